"""Which llama-server there is is asked of the program itself, and not too often."""

import asyncio

import pytest

from eloquio.engines.devices import MIB, Device
from eloquio.engines.inventory import Inventory
from eloquio.errors import EngineMissing
from eloquio.settings import Settings

PROGRAM = """#!/bin/sh
echo "$1" >> {log}
case "$1" in
  --version) echo 'version: 7777 (abc)'; echo 'built with cc' ;;
  --list-devices) printf 'Available devices:\\n  CUDA0: L4 (24 MiB, 20 MiB free)\\n' ;;
esac
"""


@pytest.fixture
def log(tmp_path):
    return tmp_path / "asked"


@pytest.fixture
def settings(tmp_path, log) -> Settings:
    program = tmp_path / "llama-server"
    program.write_text(PROGRAM.format(log=log))
    program.chmod(0o755)
    return Settings(home=tmp_path, llama_server_path=program)


def test_the_program_tells_its_version_and_devices(settings):
    build = asyncio.run(Inventory(settings).build())
    assert (build.source, build.version, build.problem) == ("setting", "7777 (abc)", None)
    assert build.devices == (Device("CUDA0", "L4", 24 * MIB, 20 * MIB),)


def test_many_who_ask_at_once_start_it_once(settings, log):
    async def ask_together() -> None:
        inventory = Inventory(settings)
        await asyncio.gather(*(inventory.build() for _ in range(5)))

    asyncio.run(ask_together())
    assert log.read_text().split() == ["--version", "--list-devices"]


def test_what_is_old_is_asked_anew(settings, log):
    seconds = [0.0]

    async def ask_at(*times: float) -> None:
        inventory = Inventory(settings, clock=lambda: seconds[0])
        for seconds[0] in times:
            await inventory.build()

    asyncio.run(ask_at(0, 9, 11, 20, 22))
    assert log.read_text().split().count("--list-devices") == 3


def test_without_a_program_that_is_said(tmp_path):
    inventory = Inventory(Settings(home=tmp_path, llama_server_path=tmp_path / "none"))
    with pytest.raises(EngineMissing):
        asyncio.run(inventory.build())
