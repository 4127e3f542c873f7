"""A loaded model, and what is asked of it."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal

from eloquio.worker.adapters import Adapters
from eloquio.worker.batch import Batches, Room, takes
from eloquio.worker.chat import Chat
from eloquio.worker.embed import Embedder
from eloquio.worker.failures import NotHere, RequestFailed
from eloquio.worker.generator import Generator
from eloquio.worker.load import Loaded, load
from eloquio.worker.one_by_one import OneByOne
from eloquio.worker.progress import Progress
from eloquio.worker.template import TemplateRefused, capabilities, template_of
from eloquio.worker.turns import ModelTurns
from eloquio.worker_plan import WorkerPlan

Task = Literal["transcribe", "translate"]


class Served:
    """Raises a RequestFailed for what its kind of model can't do."""

    def __init__(
        self,
        plan: WorkerPlan,
        loaded: Loaded | None,
        adapters: Adapters,
        generator: Generator | None,
        embedder: Embedder | None,
        turns: ModelTurns,
    ) -> None:
        self._plan = plan
        self._loaded = loaded
        self._adapters = adapters
        self._generator = generator
        self._embedder = embedder
        self._turns = turns
        self._chat = Chat(loaded, generator, adapters) if loaded and generator else None

    @classmethod
    def load(cls, plan: WorkerPlan, progress: Progress) -> "Served":
        """Blocks until the weights are there; raises a LoadFailed."""
        if plan.kind == "embedding":
            bare = Adapters((), None, None)
            return cls(plan, None, bare, None, Embedder(plan), ModelTurns(bare.switch))
        loaded = load(plan, progress)
        loaded.model, adapters = Adapters.on(loaded.model, plan.adapters, plan.default_adapter)
        turns = ModelTurns(adapters.switch)
        if plan.kind == "transcription":
            return cls(plan, loaded, adapters, None, None, turns)
        generator: Generator
        if plan.kind == "text" and takes(loaded.model):
            generator = Batches(loaded.model, turns, _room(loaded, adapters))
        else:
            generator = OneByOne(loaded.model, turns)
        return cls(plan, loaded, adapters, generator, None, turns)

    def properties(self) -> dict[str, Any]:
        """As llama-server's /props, with what only a worker has."""
        template = self._template()
        can = capabilities(template)
        kind, loaded = self._plan.kind, self._loaded
        model = loaded.model if loaded else None
        return {
            "model_alias": self._plan.model,
            "total_slots": self._plan.slots if isinstance(self._generator, Batches) else 1,
            "chat_template": template,
            "chat_template_caps": {
                "supports_tools": can.supports_tools,
                "supports_reasoning_effort": can.supports_reasoning,
            },
            "modalities": {
                "vision": kind == "vision",
                "audio": kind in ("audio_language", "transcription"),
            },
            "default_generation_settings": {"n_ctx": self._context_length()},
            "kind": kind,
            "loader": loaded.loader if loaded else "transformers",
            "adapters": list(self._adapters.names),
            "default_adapter": self._adapters.default,
            "dtype": str(model.dtype).removeprefix("torch.") if model is not None else None,
            "device": str(model.device) if model is not None else None,
            "warnings": loaded.warnings if loaded else [],
        }

    def chat(self, fields: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        return self._chatting().stream(fields)

    def complete(self, fields: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        return self._chatting().complete(fields)

    def count(self, fields: Mapping[str, Any]) -> int:
        return len(self._chatting().written(fields).prompt.ids)

    def prompt_text(self, fields: Mapping[str, Any]) -> str:
        return self._chatting().written(fields).text

    def adapters(self) -> list[dict[str, Any]]:
        return [
            {"id": number, "path": name, "scale": float(name == self._adapters.default)}
            for number, name in enumerate(self._adapters.names)
        ]

    def tokenize(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """llama-server's: `content`, `add_special`, `with_pieces`."""
        tokenizer, content = self._tokenizer(), fields.get("content", "")
        if not isinstance(content, str):
            raise RequestFailed("content has to be a text", param="content")
        ids = tokenizer.encode(content, add_special_tokens=bool(fields.get("add_special")))
        if not fields.get("with_pieces"):
            return {"tokens": ids}
        return {"tokens": [{"id": id_, "piece": tokenizer.decode([id_])} for id_ in ids]}

    def detokenize(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        tokens = fields.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(id_, int) for id_ in tokens):
            raise RequestFailed("tokens has to be a list of ids", param="tokens")
        tokenizer = self._tokenizer()
        if tokens and not 0 <= min(tokens) <= max(tokens) < len(tokenizer):
            raise RequestFailed(f"the model has {len(tokenizer)} tokens", param="tokens")
        return {"content": tokenizer.decode(tokens)}

    async def embed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        if self._embedder is None:
            raise NotHere(f"{self._plan.model} makes no vectors of texts")
        return await self._embedder.embed(fields, self._plan.model)

    def listen(self, sound: bytes, fields: Mapping[str, str], task: Task) -> AsyncGenerator[bytes]:
        """`fields` as OpenAI's transcriptions have them."""
        # Only here: what decodes sound takes a second to import.
        from eloquio.worker.listen import listen

        if self._loaded is None or self._plan.kind not in ("transcription", "audio_language"):
            raise NotHere(f"{self._plan.model} can't hear")
        return listen(self._loaded, self._turns, sound, fields, task)

    def _chatting(self) -> Chat:
        if self._chat is None:
            raise NotHere(f"{self._plan.model} can't chat")
        return self._chat

    def _tokenizer(self) -> Any:
        if self._embedder is not None:
            return self._embedder.model.tokenizer
        assert self._loaded is not None
        return self._loaded.tokenizer

    def _template(self) -> str:
        if self._chat is None or self._loaded is None:
            return ""
        try:
            return template_of(self._loaded.processor, self._plan.chat_template)
        except TemplateRefused:
            return ""

    def _context_length(self) -> int:
        if self._embedder is not None:
            return self._embedder.context_length
        assert self._loaded is not None
        return self._loaded.context_length


def _room(loaded: Loaded, adapters: Adapters) -> Room:
    """What memory was planned for is shared by the base and its adapters, each with its own batch.

    One request's whole context fits each of them in any case.
    """
    plan = loaded.plan
    planned = plan.cache_tokens // (1 + len(adapters.names))
    return Room(plan.slots, max(loaded.context_length, planned))
