"""The whole visit, with a real engine where there is one."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eloquio.doctor.memory import recall
from eloquio.doctor.visit import visit
from eloquio.settings import Settings
from eloquio.store.database import open_database
from eloquio.store.preferences import PreferenceStore


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "home", hf_hub_cache=tmp_path / "hub", port=0)


async def everything(settings: Settings) -> dict[str, str]:
    return {check.name: check.verdict async for check in visit(settings)}


def test_in_an_empty_home_everything_is_looked_at_and_the_missing_model_told(settings):
    verdicts = asyncio.run(everything(settings))
    assert list(verdicts) == [
        "python",
        "home",
        "llama-server",
        "devices",
        "database",
        "hub cache",
        "built-in model",
        "port",
        "answer",
    ]
    assert verdicts["home"] == "ok"
    assert verdicts["built-in model"] == "fail"
    assert verdicts["answer"] == "fail"


def test_the_command_tells_a_script_and_ends_with_status_one_if_something_failed(tmp_path):
    command = [sys.executable, "-m", "eloquio", "doctor", "--json", "--home", str(tmp_path / "h")]
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub")}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert result.returncode == 1
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert "scripts/start" in checks["built-in model"]["next_step"]
    assert result.stderr == ""


def test_folders_chosen_on_the_page_are_looked_at_too(settings):
    async def choose_and_recall():
        database = await open_database(settings.home)
        preferences = await PreferenceStore.open(database)
        await preferences.choose((Path("/somewhere"),), load_on_start=True)
        await database.close()
        return await recall(settings)

    check, folders = asyncio.run(choose_and_recall())
    assert check.verdict == "ok"
    assert folders == (Path("/somewhere"),)


def test_a_database_that_is_none_is_told(settings):
    settings.home.mkdir()
    (settings.home / "eloquio.db").write_text("this is a text, and a rather long one" * 100)
    check, folders = asyncio.run(recall(settings))
    assert check.verdict == "fail"
    assert "eloquio.db" in check.next_step
    assert folders == ()
