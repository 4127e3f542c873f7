"""A Chromium for the end-to-end tests."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from eloquio.setup.checkout import Checkout, environment_of_tools
from eloquio.setup.console import Progress
from eloquio.setup.steps import Step
from eloquio.setup.tools import SetupFailed, Tools

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APPLICATIONS = (
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
)


def find_chromium(environment: Mapping[str, str] = os.environ) -> str | None:
    if named := environment.get("CHROMIUM"):
        return named
    path = environment.get("PATH", os.defpath)
    found = (shutil.which(name, path=path) for name in NAMES)
    applications = (str(application) for application in APPLICATIONS if application.exists())
    return next(filter(None, (*found, *applications)), None)


def chromium_step(checkout: Checkout, tools: Tools) -> Step:
    def install(progress: Progress) -> None:
        apt_get = shutil.which("apt-get")
        if apt_get is None or os.geteuid() != 0:
            raise SetupFailed(
                "there is no Chromium on PATH",
                next_step="Install one (Debian: `apt-get install chromium`), or name its binary "
                "with CHROMIUM.",
            )
        environment = environment_of_tools() | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            tools.run(
                [apt_get, *command],
                cwd=checkout.root,
                environment=environment,
                progress=progress,
            )

    return Step(name="Chromium", is_made=lambda: find_chromium() is not None, make=install)
