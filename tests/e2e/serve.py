"""Starts a real Eloquio with a home of its own for the end-to-end tests, and clears up after it.

Usage: serve.py PORT. The built-in model comes from ELOQUIO_TEST_MODEL or the one that the set-up
keeps in `.venv`; a second, tiny one is written into a model folder, for switching, and one more
with a projector, for pictures. For the worker there are a model with two adapters, one that hears,
and a Whisper that knows digits.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from fixtures import worker_folders  # noqa: E402
from fixtures.tiny_engine import write_tiny_model  # noqa: E402
from fixtures.tiny_vision import write_tiny_projector  # noqa: E402

DIGITS = ROOT / "tests" / "fixtures" / "digits_whisper"
BUILT_IN = "smollm2-135m-instruct.gguf"


def test_model() -> Path:
    named = os.environ.get("ELOQUIO_TEST_MODEL")
    model = Path(named) if named else ROOT / ".venv" / "models" / BUILT_IN
    if not model.is_file():
        sys.exit(f"no model at {model}: run scripts/start once, or set ELOQUIO_TEST_MODEL")
    return model


def page() -> Path:
    built = Path(os.environ.get("ELOQUIO_PAGE_DIR", ROOT / "frontend" / "dist"))
    if not (built / "index.html").is_file():
        sys.exit(f"the page isn't built at {built}: run npm run build")
    return built


def environment(home: Path) -> dict[str, str]:
    """Nothing of the person who runs the tests reaches the server."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("ELOQUIO_", "HF_"))
    }
    return kept | {"HOME": str(home), "HF_HOME": str(home / "hub"), "ELOQUIO_PAGE_DIR": str(page())}


def main(port: str) -> int:
    with tempfile.TemporaryDirectory(prefix="eloquio-e2e-", ignore_cleanup_errors=True) as folder:
        home, models = Path(folder, "home"), Path(folder, "models")
        built_in = home / "models" / "builtin" / BUILT_IN
        built_in.parent.mkdir(parents=True)
        shutil.copyfile(test_model(), built_in)
        write_tiny_model(test_model(), models / "tiny.gguf")
        write_tiny_model(test_model(), models / "seeing" / "eyes.gguf")
        write_tiny_projector(models / "seeing" / "mmproj-eyes.gguf")
        worker_folders.put_adapters(models)
        shutil.copytree(worker_folders.tiny_hearing(), models / "hearing" / "ears")
        shutil.copytree(DIGITS / "model", models / "hearing" / "digits")
        serve = [sys.executable, "-m", "eloquio", "serve", "--no-browser", "--port", port]
        server = subprocess.Popen(
            [*serve, "--home", str(home), "--model-dir", str(models)], env=environment(home)
        )
        for ending in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ending, lambda number, _: server.send_signal(number))
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
