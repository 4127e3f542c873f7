"""An engine's chunks of a completion, made those of OpenAI, and folded into a whole reply.

llama-server (build 10434) names them like a chat's, tells usage unasked with each choice's last
chunk, and gives probabilities in the shape that chat has.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from eloquio.answers.exchange import Exchange
from eloquio.chat.completions.schema import CompletionRequest
from eloquio.chat.usage import Usage


class CompletionChunks:
    """Takes one stream's chunks in their order."""

    def __init__(self, request: CompletionRequest, exchange: Exchange) -> None:
        self._request = request
        self._exchange = exchange
        self._prompts = request.prompts()
        self._begun: set[int] = set()
        self._text_lengths: dict[int, int] = {}
        self._counted_prompts: set[int] = set()
        self._usage = Usage()
        self._last: dict[str, Any] = {}

    def feed(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """The chunk as a client gets it; None where nothing is left of it."""
        usage, timings = chunk.pop("usage", None), chunk.pop("timings", None) or {}
        chunk["id"] = _own_id(chunk.get("id"))
        self._last = chunk
        timeline = self._exchange.timeline
        timeline.prompt_ms = timings.get("prompt_ms") or timeline.prompt_ms
        choices = [self._mended(choice) for choice in chunk.get("choices") or ()]
        if isinstance(usage, Mapping) and choices:
            self._count(choices[0]["index"], Usage.of(usage))
        if not any(_says_something(choice) for choice in choices):
            return None
        return chunk | {"choices": choices}

    def usage(self) -> dict[str, Any]:
        """Of all choices; each prompt counts once, however many completions it has."""
        return self._usage.of_chat()

    def usage_chunk(self) -> dict[str, Any]:
        """The last of the stream, where it is asked for."""
        return self._last | {"choices": [], "usage": self.usage()} | self._exchange.traced()

    def whole(self, chunks: list[dict[str, Any]]) -> dict[str, Any]:
        """The reply that the fed `chunks` make."""
        folded: dict[int, dict[str, Any]] = {}
        for choice in _choices_of(chunks):
            index = choice["index"]
            if index not in folded:
                logprobs = _copied(choice["logprobs"])
                folded[index] = {**choice, "text": [choice["text"]], "logprobs": logprobs}
                continue
            folded[index]["text"].append(choice["text"])
            folded[index]["finish_reason"] = choice["finish_reason"]
            _extend(folded[index], choice["logprobs"])
        usage = self._exchange.usage = self.usage()
        choices = [folded[i] | {"text": "".join(folded[i]["text"])} for i in sorted(folded)]
        return self._last | {"choices": choices, "usage": usage} | self._exchange.traced()

    def _count(self, index: int, usage: Usage) -> None:
        """Each choice tells of its whole prompt, as the others of that prompt do."""
        prompt = index // (self._request.n or 1)
        if prompt in self._counted_prompts:
            usage = Usage(completion=usage.completion)
        self._counted_prompts.add(prompt)
        self._usage += usage

    def _mended(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        index, text = choice.get("index", 0), choice.get("text") or ""
        offset = self._text_lengths.get(index, 0)
        logprobs = self._logprobs(choice.get("logprobs"), offset)
        if self._request.echo and index not in self._begun:
            text = self._prompts[index // (self._request.n or 1)] + text
        self._begun.add(index)
        self._text_lengths[index] = offset + len(text)
        reason = choice.get("finish_reason")
        return {"text": text, "index": index, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, given: Mapping[str, Any] | None, offset: int) -> dict[str, Any] | None:
        if self._request.logprobs is None or not (given and given.get("content")):
            return None
        told: dict[str, Any] = {
            "tokens": [],
            "token_logprobs": [],
            "top_logprobs": [] if self._request.logprobs else None,
            "text_offset": [],
        }
        for token in given["content"]:
            told["tokens"].append(token["token"])
            told["token_logprobs"].append(token["logprob"])
            told["text_offset"].append(offset)
            offset += len(token["token"])
            if self._request.logprobs:
                top = {other["token"]: other["logprob"] for other in token["top_logprobs"]}
                told["top_logprobs"].append({token["token"]: token["logprob"]} | top)
        return told


def _says_something(choice: Mapping[str, Any]) -> bool:
    return bool(choice["text"] or choice["finish_reason"] or choice["logprobs"])


def _choices_of(chunks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        yield from chunk["choices"]


def _copied(logprobs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """With lists of its own, which then grow."""
    if logprobs is None:
        return None
    return {name: None if values is None else [*values] for name, values in logprobs.items()}


def _extend(choice: dict[str, Any], logprobs: Mapping[str, Any] | None) -> None:
    if logprobs is None:
        return
    if choice["logprobs"] is None:
        choice["logprobs"] = _copied(logprobs)
        return
    for name, values in logprobs.items():
        if values is not None:
            choice["logprobs"][name].extend(values)


def _own_id(engines: object) -> str:
    return "cmpl-" + str(engines).removeprefix("chatcmpl-").removeprefix("cmpl-")
