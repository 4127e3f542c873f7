"""An adapter's adapter_config.json: what it was trained on, and how."""

from dataclasses import dataclass

from eloquio.errors import AdapterBaseMissing, ModelKindUnsupported
from eloquio.models.json_file import Table, text


@dataclass(frozen=True)
class AdapterConfig:
    base: str
    """As the file says it: a Hub id, or a path of the machine it was trained on."""
    training_method: str | None
    """`lora` or `qlora`, where unsloth trained it."""

    @property
    def was_trained_in_4bit(self) -> bool:
        """What its base was held in. Unsloth says so; of other adapters the base's name tells."""
        match self.training_method:
            case "lora":
                return False
            case "qlora":
                return True
            case _:
                return self.base.rstrip("/").lower().endswith("-bnb-4bit")

    @property
    def reason(self) -> str:
        """Why `was_trained_in_4bit` says what it does."""
        if self.training_method in ("lora", "qlora"):
            return f"it was trained as {self.training_method}"
        return "its base's name says so" if self.was_trained_in_4bit else "nothing says otherwise"


def adapter_config(content: Table, name: str) -> AdapterConfig:
    """`name` is what a text may call the folder."""
    kind = text(content.get("peft_type")) or "LORA"
    if kind.upper() != "LORA":
        raise ModelKindUnsupported(
            f"{name} is an adapter of the kind {kind}; only LoRA adapters can be used.",
            next_step="Merge it into its base, and load that.",
        )
    base = text(content.get("base_model_name_or_path"))
    if base is None:
        raise AdapterBaseMissing(
            f"{name} doesn't say which model it was trained on.",
            next_step="Write that model's id or folder into base_model_name_or_path of its"
            " adapter_config.json.",
        )
    method = text(content.get("unsloth_training_method"))
    return AdapterConfig(base, method.lower() if method else None)
