"""`python -m eloquio.errors` prints `docs/errors.md`."""

import sys

from eloquio.errors.document import document

sys.stdout.write(document())
