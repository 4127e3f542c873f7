import sys
from pathlib import Path

import pytest

from eloquio.settings import Settings
from eloquio.setup.checkout import home_folder
from eloquio.setup.engine import Build
from eloquio.setup.options import parse_start_options


def parse(*arguments, **environment):
    return parse_start_options(arguments, environment)


def test_what_was_not_said_is_left_to_the_servers_settings(tmp_path):
    options = parse(ELOQUIO_HOME=str(tmp_path))

    assert options.serve_arguments() == ["--home", str(tmp_path)]


def test_folders_are_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    options = parse("--home", "here", "--model-dir", "one", "--model-dir", "~/two")

    assert options.home == tmp_path / "here"
    assert options.model_folders == (tmp_path / "one", Path.home() / "two")


@pytest.mark.parametrize(
    ("flags", "environment", "address"),
    [
        ([], {}, ("127.0.0.1", 8642)),
        (["--port", "9"], {"ELOQUIO_PORT": "8"}, ("127.0.0.1", 9)),
        ([], {"ELOQUIO_PORT": "8", "ELOQUIO_HOST": "10.0.0.1"}, ("10.0.0.1", 8)),
        (["--host", "0.0.0.0", "--port", "0"], {}, ("127.0.0.1", 0)),
        (["--host", "::"], {}, ("::1", 8642)),
        ([], {"ELOQUIO_PORT": "nonsense"}, ("127.0.0.1", 8642)),
    ],
)
def test_the_address_is_one_that_can_be_asked_from_here(flags, environment, address):
    assert parse(*flags).address(environment) == address


@pytest.mark.parametrize(
    ("flag", "build"), [("--cuda", Build.CUDA), ("--build", Build.CPU), ("--lite", None)]
)
def test_a_build_is_asked_for_by_its_flag(flag, build):
    assert parse(flag).build is build


@pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for POSIX shells")
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"XDG_DATA_HOME": "/data"},
        {"XDG_DATA_HOME": "  "},
        {"ELOQUIO_HOME": "/home/of/eloquio"},
        {"ELOQUIO_HOME": "~/eloquio"},
        {"ELOQUIO_HOME": "/one", "XDG_DATA_HOME": "/two"},
    ],
)
def test_the_home_is_the_one_that_the_server_chooses(environment, monkeypatch):
    for name in ("ELOQUIO_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert home_folder(environment) == Settings().home
