"""What the backend holds before it is asked for anything."""

import subprocess
import sys

import psutil

from fixtures.running import serving

HEAVY = ("torch", "transformers", "numpy", "PIL", "huggingface_hub", "gguf", "openai")


def test_the_backend_imports_nothing_heavy_before_it_is_needed():
    program = "import sys, eloquio.server; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    modules = set(done.stdout.split())
    assert "eloquio.app" in modules
    assert not modules & set(HEAVY)


def test_the_backend_without_a_model_holds_at_most_120_mb(home):
    with serving(home, ELOQUIO_LOAD_ON_START="false") as server:
        assert psutil.Process(server.process.pid).memory_info().rss < 120e6
