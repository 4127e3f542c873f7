"""Vectors for texts, by sentence-transformers where the folder is one of its own."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import torch
from safetensors import SafetensorError

from eloquio.worker.failures import LoadFailed, PromptTooLong, RequestFailed
from eloquio.worker_plan import WorkerPlan


class Embedder:
    """One model of sentence-transformers: its modules say how the vectors are pooled."""

    def __init__(self, plan: WorkerPlan) -> None:
        from sentence_transformers import SentenceTransformer

        from eloquio.worker.load import device_of

        try:
            self.model = SentenceTransformer(
                plan.model_path,
                device=device_of(plan),
                local_files_only=True,
                trust_remote_code=plan.trust_remote_code,
            )
        except (ValueError, OSError, KeyError, RuntimeError, SafetensorError) as error:
            raise LoadFailed("refused", str(error)) from error
        self._turns = asyncio.Lock()

    @property
    def context_length(self) -> int:
        return int(self.model.max_seq_length or 512)

    async def embed(self, fields: Mapping[str, Any], model: str) -> dict[str, Any]:
        """OpenAI's reply, each vector as base64 of little-endian float32 where that was asked."""
        inputs = fields.get("input")
        texts = [inputs] if isinstance(inputs, str) else inputs
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise RequestFailed("input has to be a text or a list of texts", param="input")
        async with self._turns:
            vectors, tokens = await asyncio.to_thread(self._vectors, texts)
        is_base64 = fields.get("encoding_format") == "base64"
        return {
            "object": "list",
            "model": model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            "data": [
                {"object": "embedding", "index": index, "embedding": _told(vector, is_base64)}
                for index, vector in enumerate(vectors)
            ],
        }

    @torch.no_grad()
    def _vectors(self, texts: list[str]) -> tuple[torch.Tensor, int]:
        tokenizer = self.model.tokenizer
        lengths = [len(tokenizer(text, truncation=False)["input_ids"]) for text in texts]
        if lengths and max(lengths) > self.context_length:
            raise PromptTooLong(max(lengths), self.context_length, param="input")
        vectors = self.model.encode(texts, convert_to_tensor=True, show_progress_bar=False)
        return vectors.float().cpu(), sum(lengths)


def _told(vector: torch.Tensor, is_base64: bool) -> str | list[float]:
    if is_base64:
        return base64.b64encode(vector.numpy().astype("<f4").tobytes()).decode()
    numbers: list[float] = vector.tolist()
    return numbers
