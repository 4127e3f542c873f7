"""No test depends on the settings of the person who runs it."""

import os

import pytest

SETTINGS_OF_A_PERSON = ("ELOQUIO_", "HF_", "LLAMA_", "XDG_")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in os.environ:
        if name.startswith(SETTINGS_OF_A_PERSON) and not name.startswith("ELOQUIO_TEST_"):
            monkeypatch.delenv(name)
