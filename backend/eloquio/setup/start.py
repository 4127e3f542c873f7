"""`scripts/start`: makes ready what isn't, then turns into the server."""

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from eloquio.setup.checkout import Checkout, without_python_settings
from eloquio.setup.console import Console
from eloquio.setup.engine import (
    EngineSource,
    engine_source,
    extras_for,
    how_to_get_one,
    this_machine,
)
from eloquio.setup.llama_build import build_step
from eloquio.setup.lock import only_one
from eloquio.setup.model import model_step
from eloquio.setup.node import node_step
from eloquio.setup.options import StartOptions, parse_start_options
from eloquio.setup.packages import packages_step, venv_step
from eloquio.setup.page import Page, page_step
from eloquio.setup.signals import unwind_on_signals
from eloquio.setup.steps import Step, explanation, run_steps
from eloquio.setup.tools import SetupFailed, Tools
from eloquio.setup.worker import WorkerEnvironment, make_in_background, worker_step


def start(arguments: Sequence[str]) -> int:
    """The exit status when it fails; when all is well this process is the server from then on."""
    checkout = Checkout.here()
    options = parse_start_options(arguments)
    unwind_on_signals()
    tools = Tools()
    with Console() as console:
        try:
            failed = make_ready(checkout, options, tools, console)
        except (SetupFailed, OSError) as error:
            console.say(explanation("Start", error))
            return 1
        except KeyboardInterrupt:
            console.say("Stopped; running it again goes on from here.")
            return 130
        if failed:
            console.say(f"Not started: {', '.join(failed)}. Running it again goes on from here.")
            return 1
    if not options.is_lite and not WorkerEnvironment(checkout, options.home, tools).is_made():
        make_in_background(checkout, options)
    return turn_into_server(checkout, options)


def make_ready(
    checkout: Checkout, options: StartOptions, tools: Tools, console: Console
) -> list[str]:
    """Make what the server needs, and return the names of the steps that failed."""
    with only_one(checkout, console):
        failed = run_steps(needed_steps(checkout, options, tools), tools, console)
        if not failed and options.waits_for_worker:
            # Its failure is said, but what can be served without it is served.
            run_steps([worker_step(checkout, options.home, tools)], tools, console)
    return failed


def needed_steps(
    checkout: Checkout,
    options: StartOptions,
    tools: Tools,
    environment: Mapping[str, str] = os.environ,
) -> list[Step]:
    system, machine = this_machine()
    steps = [
        venv_step(checkout, tools),
        model_step(checkout, tools, options.home),
        node_step(checkout, tools, unless=Page(checkout, tools).is_built),
        page_step(checkout, tools),
    ]
    if options.build is not None:
        return [
            *steps,
            packages_step(checkout, (), tools),
            build_step(checkout, options.build, tools),
        ]
    source = engine_source(checkout, environment, system, machine)
    if source is EngineSource.NONE:
        raise SetupFailed("there is no llama-server here", next_step=how_to_get_one(system))
    return [*steps, packages_step(checkout, extras_for(source), tools)]


def turn_into_server(checkout: Checkout, options: StartOptions) -> NoReturn:
    python = str(checkout.python)
    serve = [python, "-m", "eloquio", "serve", *options.serve_arguments()]
    os.execve(python, serve, without_python_settings(os.environ))
