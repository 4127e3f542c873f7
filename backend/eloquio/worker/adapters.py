"""LoRA adapters on one base: any number, of which one at most is active in a step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eloquio.worker.failures import LoadFailed, RequestFailed
from eloquio.worker_plan import AdapterPlan


class Adapters:
    """The names a request may use, and the switch between them."""

    def __init__(self, names: Sequence[str], default: str | None, tuned: Any | None) -> None:
        self.names = tuple(names)
        self.default = default
        self._tuned = tuned

    @classmethod
    def on(
        cls, model: Any, plans: Sequence[AdapterPlan], default: str | None
    ) -> "tuple[Any, Adapters]":
        """The model with the adapters' weights in it, and what switches them."""
        if not plans:
            return model, cls((), None, None)
        from peft import PeftModel

        tuned: Any = None
        names = [plan.name for plan in plans]
        for plan in plans:
            _refuse_pickle(plan)
            module = _module(names, plan.name)
            try:
                if tuned is None:
                    tuned = PeftModel.from_pretrained(model, plan.path, adapter_name=module)
                else:
                    tuned.load_adapter(plan.path, adapter_name=module)
            except (ValueError, RuntimeError, KeyError, OSError) as error:
                raise LoadFailed("adapter_refused", f"{plan.name}: {error}") from error
        tuned.eval()
        return tuned.get_base_model(), cls(names, default, tuned)

    def switch(self, name: str | None) -> None:
        """From now on the model runs with this adapter, or plain."""
        if self._tuned is None:
            return
        if name is None:
            self._tuned.base_model.disable_adapter_layers()
        else:
            self._tuned.base_model.enable_adapter_layers()
            self._tuned.set_adapter(_module(self.names, name))

    def asked(self, use_adapter: object) -> str | None:
        """What `use_adapter` means: null the default, false the base, true the first."""
        match use_adapter:
            case None:
                return self.default
            case False:
                return None
            case True if self.names:
                return self.default or self.names[0]
            case str(name) if name in self.names:
                return name
        there = f"it has {', '.join(self.names)}" if self.names else "it has none"
        wanted = "an adapter" if use_adapter is True else f"the adapter {use_adapter!r}"
        raise RequestFailed(f"the model isn't loaded with {wanted}; {there}", param="use_adapter")


def _module(names: Sequence[str], name: str) -> str:
    """What peft calls it: a module of torch, whose name may hold no dot."""
    return f"adapter_{names.index(name)}"


def _refuse_pickle(plan: AdapterPlan) -> None:
    if not any(Path(plan.path).glob("*.safetensors")):
        raise LoadFailed("adapter_refused", f"{plan.name} has no safetensors weights")
