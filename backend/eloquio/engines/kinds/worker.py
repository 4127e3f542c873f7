"""Our own worker, a process in the torch environment: how it is started, what its end means."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eloquio.engines import exits
from eloquio.engines.address import Address
from eloquio.engines.facts import Facts
from eloquio.engines.kinds.blame import Blame
from eloquio.engines.kinds.kind import Start, key_file
from eloquio.engines.kinds.worker_environment import python_of
from eloquio.engines.spec import EngineSpec
from eloquio.errors import (
    AdapterRefused,
    EloquioError,
    EngineArchitectureUnknown,
    EngineOutOfMemory,
    EngineRefusedFile,
    LoaderRefused,
    PickleRefused,
    RemoteCodeRefused,
    WorkerMissing,
)
from eloquio.settings import Settings
from eloquio.setup.checkout import Checkout
from eloquio.worker_plan import WorkerPlan

# The folder that holds the package `eloquio`.
_PACKAGES = Path(__file__).resolve().parents[3]
_LOAD_FAILED = "worker-load-failed: "
_LONGEST_WORDS = 600
_NOT_INSTALLED = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
# What would lead it to another Python's packages, to another cache, or to the network.
_NOT_INHERITED = ("ELOQUIO_", "HF_", "HUGGING", "TRANSFORMERS_", "LLAMA_", "PYTHON", "VIRTUAL_ENV")


class Worker:
    """A `Kind`: a worker for one model."""

    def __init__(self, spec: EngineSpec, settings: Settings) -> None:
        self._spec = spec
        self._settings = settings

    async def prepare(self, address: Address, files: Path, without: frozenset[Blame]) -> Start:
        python = await asyncio.to_thread(python_of, self._spec, self._settings, Checkout.here())
        plan_file = files.with_suffix(".json")
        await asyncio.to_thread(plan_of(self._spec).write, plan_file)
        command = [str(python), "-m", "eloquio.worker", "--plan", str(plan_file)]
        return Start([*command, *_listening(address, files)], environment(os.environ))

    def folders(self) -> Sequence[Path]:
        plan = plan_of(self._spec)
        paths = [plan.model_path, *(adapter.path for adapter in plan.adapters)]
        named = self._spec.worker_python or self._settings.worker_python
        python = named or Checkout.here().worker_python
        # A traceback names the libraries' files.
        libraries = [python.parents[1], Path(sys.base_prefix), _PACKAGES]
        return [*(Path(path).parent for path in paths), *libraries]

    def blamed(self, status: int, lines: Sequence[str]) -> Blame | None:
        """Nothing: what it can do without, it does without by itself, and says so."""
        return None

    def start_failure(self, status: int, lines: Sequence[str]) -> EloquioError:
        return _missing_package(lines) or _told_failure(lines) or exits.start_failure(status, lines)

    def differences(
        self, facts: Facts, lines: Sequence[str], without: frozenset[Blame]
    ) -> list[str]:
        found = list(facts.warnings)
        asked = self._spec.context_length
        if asked and facts.context_length < asked:
            found.append(
                f"The worker made a context of {facts.context_length} tokens instead of {asked}."
            )
        device = self._spec.memory.device
        if device != "cpu" and facts.device is not None and facts.device.startswith("cpu"):
            found.append(f"The model runs on the processor: the worker can't use {device}.")
        return found


def plan_of(spec: EngineSpec) -> WorkerPlan:
    """What the worker is told: its own choices, and those that are made for every engine."""
    assert spec.worker is not None
    return replace(
        spec.worker,
        model=spec.model,
        context_length=spec.context_length,
        weights_bytes=spec.memory.weights_bytes,
    )


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: our package and its own, and no way to the Hub."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(_NOT_INHERITED)}
    return kept | {
        "PYTHONPATH": str(_PACKAGES),
        # Or `-m` would look for modules in the folder that Eloquio was started in first.
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Threads that wait for each other by spinning keep the cores from whoever else is at work.
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def _listening(address: Address, files: Path) -> list[str]:
    if address.socket_path is not None:
        return ["--socket", str(address.socket_path)]
    return ["--port", str(address.port), "--key-file", str(key_file(address, files))]


def _told_failure(lines: Sequence[str]) -> EloquioError | None:
    told = [line for line in lines if line.startswith(_LOAD_FAILED)]
    if not told:
        return None
    try:
        match json.loads(told[-1].removeprefix(_LOAD_FAILED)):
            case {"cause": str(cause), "message": str(message)}:
                return _error(cause, exits.without_paths(message)[:_LONGEST_WORDS])
    except ValueError:  # it was longer than a line that is kept
        pass
    return EngineRefusedFile(
        "The model can't be loaded.", evidence=exits.without_paths(told[-1])[:_LONGEST_WORDS]
    )


def _error(cause: str, words: str) -> EloquioError:
    match cause:
        case "out_of_memory":
            return EngineOutOfMemory("There isn't enough memory for the model.", evidence=words)
        case "loader_refused":
            return LoaderRefused("The loader that was asked for refused the model.", evidence=words)
        case "adapter_refused":
            return AdapterRefused("An adapter can't be put on this model.", evidence=words)
        case "pickle_refused":
            return PickleRefused("The model's weights are there only as pickle.", evidence=words)
        case "custom_code":
            return RemoteCodeRefused("The model needs its repository's code.", evidence=words)
        case "architecture_unsupported":
            return EngineArchitectureUnknown(
                "The torch environment's transformers doesn't know the model's architecture.",
                evidence=words,
                next_step="Name an environment with a newer transformers in worker_envs.",
            )
        case _:
            return EngineRefusedFile("The model can't be loaded.", evidence=words)


def _missing_package(lines: Sequence[str]) -> WorkerMissing | None:
    missing = [match[1] for line in lines if (match := _NOT_INSTALLED.search(line))]
    if not missing:
        return None
    return WorkerMissing(f"The worker's Python has no package {missing[-1]}.")
