"""The page: what it is made with, and the page itself."""

from pathlib import Path

from eloquio.setup.checkout import Checkout
from eloquio.setup.console import Progress
from eloquio.setup.node import required_node
from eloquio.setup.stamps import Stamp, digest, files_below
from eloquio.setup.steps import Step
from eloquio.setup.tools import Tools


def page_step(checkout: Checkout, tools: Tools) -> Step:
    """The built page; what it is made with is fetched only when it has to be built."""
    page = Page(checkout, tools)
    return Step(
        name="Page",
        is_made=page.is_built,
        make=page.build,
        after=("Node.js", "npm packages"),
    )


def node_modules_step(checkout: Checkout, tools: Tools) -> Step:
    """What the page is made and checked with."""
    page = Page(checkout, tools)
    return Step(
        name="npm packages",
        is_made=page.has_node_modules,
        make=page.install,
        after=("Node.js",),
    )


class Page:
    """The built page and its `node_modules`, each with a stamp inside that says from what."""

    def __init__(self, checkout: Checkout, tools: Tools) -> None:
        self._checkout = checkout
        self._tools = tools
        # Both folders are emptied by the tools that fill them, and their stamps with them.
        self._installed = Stamp(checkout.node_modules / ".installed-from")
        self._built = Stamp(checkout.built_page / ".built-from")

    def is_built(self) -> bool:
        return self._built.says(self._sources())

    def has_node_modules(self) -> bool:
        return self._installed.says(self._lock())

    def build(self, progress: Progress) -> None:
        if not self.has_node_modules():
            self.install(progress)
        sources = self._sources()
        self._built.clear()
        vite = self._checkout.node_modules / ".bin" / "vite"
        self._tools.run(
            [vite, "build", self._checkout.frontend],
            cwd=self._checkout.root,
            environment=required_node(self._checkout).environment(),
            progress=progress,
        )
        self._built.write(sources)

    def install(self, progress: Progress) -> None:
        node = required_node(self._checkout)
        self._installed.clear()
        progress.tell("npm ci")
        self._tools.run(
            [*node.npm, "ci", "--no-audit", "--no-fund"],
            cwd=self._checkout.root,
            environment=node.environment(),
            progress=progress,
        )
        self._installed.write(self._lock())

    def _lock(self) -> str:
        return digest(self._checkout.root, self._package_files())

    def _sources(self) -> str:
        sources = files_below(self._checkout.frontend, but=("dist", "node_modules"))
        return digest(self._checkout.root, [*sources, *self._package_files()])

    def _package_files(self) -> list[Path]:
        return [self._checkout.root / name for name in ("package.json", "package-lock.json")]
