"""The closed catalogue of what can go wrong, in words for the person who meets it.

An error is raised where its cause is known; one handler (`app.py`) renders it. `code` is stable and
is what a script may branch on; the message says what happened; `next_step` says what to do. A class
says by its docstring when it is met: `docs/errors.md` is made from it all.
"""

# One catalogue to whoever raises an error or renders it; its parts are by meaning.
from eloquio.errors.answering import *  # noqa: F403
from eloquio.errors.asking import *  # noqa: F403
from eloquio.errors.finding import *  # noqa: F403
from eloquio.errors.loading import *  # noqa: F403
from eloquio.errors.media import *  # noqa: F403
from eloquio.errors.root import *  # noqa: F403
from eloquio.errors.runs import *  # noqa: F403
from eloquio.errors.starting import *  # noqa: F403
