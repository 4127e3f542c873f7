import subprocess
import sys

from eloquio.setup.checkout import Checkout

LOAD_ALL = """
import importlib, pkgutil, sys
import eloquio.setup
for module in pkgutil.iter_modules(eloquio.setup.__path__):
    if module.name != "__main__":
        importlib.import_module(f"eloquio.setup.{module.name}")
ours = {name for name in sys.modules if name.startswith("eloquio")}
print(sorted(name for name in ours if not name.startswith("eloquio.setup")))
"""


def test_set_up_runs_before_anything_is_installed():
    """Without the folder of installed packages, so that an import of one of them would fail."""
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", LOAD_ALL],
        env={"PYTHONPATH": str(Checkout.here().root / "backend")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert loaded.stderr == ""
    assert loaded.stdout.strip() == "['eloquio']"
