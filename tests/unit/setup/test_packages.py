import pytest

from eloquio.setup.packages import packages_step
from eloquio.setup.tools import ToolFailed


def test_packages_are_installed_once(workshop, tools, progress):
    workshop.python()
    step = packages_step(workshop.checkout, ["engine"], tools)
    assert not step.is_made()

    step.make(progress)

    assert step.is_made()
    assert workshop.commands() == [
        "python -m pip --disable-pip-version-check --no-input "
        "install -c backend/constraints.txt -e .[engine]"
    ]


def test_a_failed_installation_is_tried_again(workshop, tools, progress):
    workshop.python("exit 1")
    step = packages_step(workshop.checkout, [], tools)
    with pytest.raises(ToolFailed):
        step.make(progress)
    assert not step.is_made()

    workshop.python()
    step.make(progress)

    assert step.is_made()


@pytest.mark.parametrize("name", ["pyproject.toml", "backend/constraints.txt"])
def test_other_requirements_are_installed_anew(workshop, tools, progress, name):
    workshop.python()
    step = packages_step(workshop.checkout, [], tools)
    step.make(progress)

    (workshop.checkout.root / name).write_text("other")

    assert not step.is_made()


def test_an_extra_comes_beside_those_installed_before(workshop, tools, progress):
    workshop.python()
    packages_step(workshop.checkout, ["engine"], tools).make(progress)
    with_dev = packages_step(workshop.checkout, ["dev"], tools)
    assert not with_dev.is_made()

    with_dev.make(progress)

    assert workshop.commands()[-1].endswith("-e .[dev,engine]")
    assert packages_step(workshop.checkout, ["engine"], tools).is_made()


def test_an_environment_without_its_python_is_not_taken_for_made(workshop, tools, progress):
    workshop.python()
    step = packages_step(workshop.checkout, [], tools)
    step.make(progress)

    workshop.checkout.python.unlink()

    assert not step.is_made()
