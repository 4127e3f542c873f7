"""Where things lie in a checkout, and where Eloquio's home is."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MODEL_FILE = "smollm2-135m-instruct.gguf"


@dataclass(frozen=True)
class Checkout:
    """The folders of one checkout; what is made by set-up lies in those that git ignores."""

    root: Path

    @classmethod
    def here(cls) -> "Checkout":
        return cls(Path(__file__).resolve().parents[3])

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def worker_venv(self) -> Path:
        return self.root / ".venv-worker"

    @property
    def worker_python(self) -> Path:
        return self.worker_venv / "bin" / "python"

    @property
    def constraints(self) -> Path:
        return self.root / "backend" / "constraints.txt"

    @property
    def worker_constraints(self) -> Path:
        return self.root / "backend" / "worker-constraints.txt"

    @property
    def node_modules(self) -> Path:
        return self.root / "node_modules"

    @property
    def frontend(self) -> Path:
        return self.root / "frontend"

    @property
    def built_page(self) -> Path:
        return self.frontend / "dist"

    @property
    def kept_model(self) -> Path:
        """The built-in model, kept so that a new home needs no network."""
        return self.venv / "models" / MODEL_FILE

    @property
    def built_engine(self) -> Path:
        """Where the llama-server lies that was built here."""
        return self.venv / "llama.cpp" / "bin" / "llama-server"


def home_folder(environment: Mapping[str, str]) -> Path:
    """The home that the server would choose, by the rule of its settings."""
    if named := environment.get("ELOQUIO_HOME"):
        return Path(named).expanduser().absolute()
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/eloquio").expanduser()
    data = environment.get("XDG_DATA_HOME", "").strip()
    return Path(data or "~/.local/share").expanduser().absolute() / "eloquio"


def home_model(home: Path) -> Path:
    return home / "models" / "builtin" / MODEL_FILE


def without_python_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment less what would lead another Python, or its pip, away from its own folder."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX"}
    return {name: value for name, value in environment.items() if name not in unwanted}


def environment_of_tools() -> dict[str, str]:
    return without_python_settings(os.environ)
