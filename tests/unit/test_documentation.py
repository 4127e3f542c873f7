"""The documentation is true to the code: what exists stands in it."""

import re
from pathlib import Path

import pytest
import typer.main
from pydantic import AliasChoices

from eloquio import errors
from eloquio.app import create_app
from eloquio.cli import app as command_line
from eloquio.errors.document import catalogue, document
from eloquio.settings import Settings

ROOT = Path(__file__).parents[2]
TEXTS = {path: path.read_text() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]}
ALL_TEXT = "\n".join(TEXTS.values())
COMMANDS = typer.main.get_command(command_line).commands


def is_told(name: str) -> bool:
    """Whether it stands in the documentation as a whole word, in the type of code."""
    return (
        re.search(rf"`[^`\n]*(?<![\w/-]){re.escape(name)}(?![\w/-])[^`\n]*`", ALL_TEXT) is not None
    )


def variables() -> list[str]:
    found = []
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        found.append(
            alias.choices[0] if isinstance(alias, AliasChoices) else f"ELOQUIO_{name.upper()}"
        )
    return found


def flags() -> list[tuple[str, str]]:
    return [
        (command, flag)
        for command, what in COMMANDS.items()
        for parameter in what.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag.startswith("-")
    ]


def routes(tmp_path: Path) -> list[tuple[str, str]]:
    paths = create_app(Settings(home=tmp_path)).openapi()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def test_the_errors_document_is_what_the_catalogue_says():
    assert (ROOT / "docs" / "errors.md").read_text() == document(), "run scripts/check --fix"


@pytest.mark.parametrize("error", catalogue(), ids=lambda error: error.code)
def test_an_error_says_when_it_is_met_and_what_to_do(error):
    assert f"### `{error.code}`" in ALL_TEXT
    assert vars(error).get("__doc__"), "the document is made from it"
    assert vars(error).get("code"), "a code of its own"
    assert error.next_step
    assert 400 <= error.status < 600


def test_no_two_errors_share_a_code_and_none_is_left_out():
    codes = [error.code for error in catalogue()]
    assert len(codes) == len(set(codes))
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    exported = {value for value in classes if issubclass(value, errors.EloquioError)}
    assert exported - {errors.EloquioError} == set(catalogue())


def test_the_page_has_words_of_its_own_only_for_what_the_server_could_not_say():
    source = (ROOT / "frontend" / "src" / "api" / "errors.ts").read_text()
    own = set(re.findall(r'(?:code:|\?\?) "([a-z_]+)"', source))
    assert own == {"server_unreachable", "unreadable_reply", "unknown_error"}
    assert own & {error.code for error in catalogue()} == set()
    assert all(is_told(code) for code in own)


def test_the_page_branches_on_no_code_that_does_not_exist():
    sources = [*ROOT.glob("frontend/src/**/*.ts"), *ROOT.glob("frontend/src/**/*.tsx")]
    texts = [path.read_text() for path in sources if ".test." not in path.name]
    asked = {code for text in texts for code in re.findall(r'\.code [!=]== "(\w+)"', text)}
    assert "load_cancelled" in asked
    assert asked - {error.code for error in catalogue()} == set()


@pytest.mark.parametrize("variable", variables())
def test_a_setting_is_told(variable):
    assert is_told(variable)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_told(command):
    assert is_told(f"eloquio {command}")


@pytest.mark.parametrize(("command", "flag"), flags())
def test_a_flag_is_told_where_its_command_is(command, flag):
    lines = [line for line in ALL_TEXT.splitlines() if f"`eloquio {command}" in line]
    # The server's flags stand with the settings that they are.
    assert is_told(flag) if command == "serve" else any(f"`{flag}`" in line for line in lines)


def test_every_route_is_told(tmp_path):
    told = re.findall(r"`(GET|POST|PUT|DELETE) (/\S+?)`", ALL_TEXT)
    assert set(routes(tmp_path)) - set(told) == set()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_a_link_to_a_file_of_ours_leads_somewhere(path):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", TEXTS[path])
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_what_is_not_there_would_be_missed():
    assert not is_told("ELOQUIO_NOWHERE")
    assert not is_told("--hom")
