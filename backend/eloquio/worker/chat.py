"""A chat request and a completion without one, from the body to the stream of chunks."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eloquio.worker.adapters import Adapters
from eloquio.worker.answer import Outcome, Reading, Told, answer, told_logprobs
from eloquio.worker.answer_text import AnswerText, skipped_ids
from eloquio.worker.chunks import ACCEPTED, Chunks, deltas, timings, usage
from eloquio.worker.failures import NotHere, PromptTooLong, RequestFailed
from eloquio.worker.generator import Generator, Order, Prompt
from eloquio.worker.load import Loaded
from eloquio.worker.reasoning import ReasoningForm, end_of_reasoning, reasoning_form
from eloquio.worker.sampling import sampling_of
from eloquio.worker.template import Conversation, prompt_ids, prompt_text, template_of
from eloquio.worker.tool_calls import call_form

if TYPE_CHECKING:
    from eloquio.worker.grammar import Grammar, Grammars


@dataclass(frozen=True)
class Written:
    """A conversation as its template writes it."""

    template: str
    text: str
    prompt: Prompt


class Chat:
    """Answers requests with one model's generator."""

    def __init__(self, loaded: Loaded, generator: Generator, adapters: Adapters) -> None:
        self._loaded = loaded
        self._generator = generator
        self._adapters = adapters
        self._grammars: Grammars | None = None
        self._special = {
            id_: token.content
            for id_, token in loaded.tokenizer.added_tokens_decoder.items()
            if token.special
        }
        plan = loaded.plan
        self._recommended = {
            name: getattr(plan, name)
            for name in (
                *("temperature", "top_p", "top_k", "min_p"),
                *("repetition_penalty", "presence_penalty"),
            )
        }

    def written(self, fields: Mapping[str, Any]) -> Written:
        """Renders and tokenizes; what can take long, so it belongs in a thread."""
        conversation = _conversation(fields)
        loaded = self._loaded
        template = template_of(
            loaded.processor, loaded.plan.chat_template, has_tools=bool(conversation.tools)
        )
        if loaded.plan.kind in ("vision", "audio_language"):
            return self._written_with_media(template, conversation)
        text = prompt_text(loaded.processor, template, conversation)
        return Written(template, text, Prompt(prompt_ids(loaded.tokenizer, text)))

    def _written_with_media(self, template: str, conversation: Conversation) -> Written:
        # Only here: the processors' libraries take a second to import.
        from eloquio.worker import media, vision

        loaded = self._loaded
        messages, pictures, sounds = media.taken_from(conversation.messages, loaded.plan)
        conversation = replace(conversation, messages=messages)
        text = prompt_text(loaded.processor, template, conversation, takes_media=True)
        return Written(template, text, vision.prepared(loaded, text, pictures, sounds))

    async def stream(self, fields: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        """OpenAI's chunks; the first event comes once the request is known to be right."""
        _refuse_forced_calls(fields)
        adapter = self._adapters.asked(fields.get("use_adapter"))
        written = await asyncio.to_thread(self.written, fields)
        grammar = await asyncio.to_thread(self._grammar, fields)
        order = self._order(fields, written.prompt, adapter)
        conversation = _conversation(fields)
        form = reasoning_form(written.template, written.text, conversation.continued)
        if grammar is not None:
            order = replace(order, grammar=self._after_thinking(grammar, form, order))
        calls = call_form(written.template) if conversation.tools else None
        skip_ids = skipped_ids(self._special, form, calls) | order.end_ids

        def reading() -> Reading:
            # What keeps to a form is read by whoever asked for the form.
            tools = () if grammar is not None else conversation.tools
            text = AnswerText(form, calls or call_form(""), tools)
            before = written.prompt.ids if conversation.continued else ()
            return Reading(self._decode, skip_ids, before, _stops(fields), text)

        tells_each = bool(fields.get("timings_per_token"))
        chunks = Chunks("chatcmpl", "chat.completion.chunk", self._loaded.plan.model)
        choices = [
            self._chat_choice(index, order, reading(), chunks, tells_each=tells_each)
            for index in range(fields.get("n") or 1)
        ]
        yield ACCEPTED
        async with aclosing(_merged(choices)) as events:
            async for event in events:
                yield event

    async def complete(self, fields: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        """The same for OpenAI's older completions: of a text or token ids, or a list of such.

        Each prompt has its `n` choices, numbered in the prompts' order.
        """
        adapter = self._adapters.asked(fields.get("use_adapter"))
        prompts = await asyncio.to_thread(self._prompts, fields.get("prompt"))
        grammar = await asyncio.to_thread(self._grammar, fields)
        orders = [
            replace(self._order(fields, Prompt(ids), adapter), grammar=grammar) for ids in prompts
        ]
        chunks = Chunks("cmpl", "text_completion", self._loaded.plan.model)
        each = fields.get("n") or 1
        choices = [
            self._text_choice(number * each + choice, order, self._plainly(order, fields), chunks)
            for number, order in enumerate(orders)
            for choice in range(each)
        ]
        yield ACCEPTED
        async with aclosing(_merged(choices)) as events:
            async for event in events:
                yield event

    def _grammar(self, fields: Mapping[str, Any]) -> "Grammar | None":
        """In a thread: a large schema takes seconds."""
        if not any(fields.get(name) for name in ("response_format", "json_schema", "grammar")):
            return None
        if self._grammars is None:
            # Only where one is asked for: reading a vocabulary takes a while.
            from eloquio.worker.grammar import Grammars

            self._grammars = Grammars(self._loaded)
        return self._grammars.asked_by(fields)

    def _after_thinking(self, grammar: "Grammar", form: ReasoningForm, order: Order) -> "Grammar":
        """What the model thinks keeps to no form."""
        end = end_of_reasoning(form)
        if end is None:
            return grammar
        from eloquio.worker.grammar import Thinking

        return replace(grammar, thinking=Thinking(end, self._decode, order.end_ids))

    def _decode(self, ids: list[int]) -> str:
        text: str = self._loaded.tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _plainly(self, order: Order, fields: Mapping[str, Any]) -> Reading:
        skip_ids = frozenset(self._special) | order.end_ids
        return Reading(self._decode, skip_ids, order.prompt.ids, _stops(fields), None)

    def _prompts(self, prompt: Any) -> list[Sequence[int]]:
        """The ids of each prompt."""
        if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
            return [self._plain_ids(one) for one in prompt]
        return [self._plain_ids(prompt)]

    def _plain_ids(self, prompt: Any) -> Sequence[int]:
        if isinstance(prompt, str):
            ids: list[int] = self._loaded.tokenizer.encode(prompt)
            return ids
        if isinstance(prompt, list) and prompt and all(isinstance(id_, int) for id_ in prompt):
            return prompt
        raise RequestFailed("prompt has to be a text, or the ids of one", param="prompt")

    def _order(self, fields: Mapping[str, Any], prompt: Prompt, adapter: str | None) -> Order:
        held = self._loaded.context_length
        room = held - len(prompt.ids)
        if room < 1:
            raise PromptTooLong(len(prompt.ids), held)
        if not prompt.ids:
            raise RequestFailed("the prompt is empty", param="prompt")
        asked = fields.get("max_completion_tokens") or fields.get("max_tokens") or room
        return Order(
            prompt=prompt,
            sampling=sampling_of(fields, self._recommended),
            end_ids=frozenset() if fields.get("ignore_eos") else self._loaded.end_ids,
            max_new_tokens=max(1, min(int(asked), room)),
            adapter=adapter,
        )

    async def _chat_choice(
        self, index: int, order: Order, reading: Reading, chunks: Chunks, *, tells_each: bool
    ) -> AsyncGenerator[bytes]:
        """`tells_each`: each chunk says how many tokens there are so far."""
        outcome, is_first = Outcome(), True
        async with aclosing(
            answer(self._generator, _seeded(order, index), reading, outcome)
        ) as parts:
            async for told in parts:
                if is_first:
                    yield _role(index, chunks)
                    is_first = False
                so_far = {"timings": _timings(order, outcome)} if tells_each else None
                for event in self._chat_deltas(index, told, chunks, so_far):
                    yield event
        if is_first:
            yield _role(index, chunks)
        yield chunks.choice(index=index, delta={}, finish_reason=outcome.finish_reason)
        yield chunks.end(_totals(order, outcome))

    def _chat_deltas(
        self, index: int, told: Told, chunks: Chunks, so_far: Mapping[str, Any] | None
    ) -> list[bytes]:
        events = []
        logprobs = told_logprobs(told.steps, self._decode)
        for delta in deltas(told.pieces):
            more = {} if logprobs is None else {"logprobs": logprobs}
            logprobs = None
            events.append(
                chunks.choice(so_far, index=index, delta=delta, finish_reason=None, **more)
            )
        return events

    async def _text_choice(
        self, index: int, order: Order, reading: Reading, chunks: Chunks
    ) -> AsyncGenerator[bytes]:
        outcome = Outcome()
        async with aclosing(
            answer(self._generator, _seeded(order, index), reading, outcome)
        ) as parts:
            async for told in parts:
                text = "".join(delta.get("content", "") for delta in deltas(told.pieces))
                logprobs = told_logprobs(told.steps, self._decode)
                yield chunks.choice(index=index, text=text, logprobs=logprobs, finish_reason=None)
        yield chunks.choice(
            _totals(order, outcome),
            index=index,
            text="",
            logprobs=None,
            finish_reason=outcome.finish_reason,
        )


def _role(index: int, chunks: Chunks) -> bytes:
    return chunks.choice(
        index=index, delta={"role": "assistant", "content": None}, finish_reason=None
    )


def _totals(order: Order, outcome: Outcome) -> dict[str, Any]:
    used = usage(len(order.prompt.ids), outcome.tokens)
    return {"usage": used, "timings": _timings(order, outcome)}


def _timings(order: Order, outcome: Outcome) -> dict[str, Any]:
    """Of the answer as far as it has come."""
    ended = outcome.ended or time.monotonic()
    first = outcome.first or ended
    prompt_ms, decode_ms = 1000 * (first - outcome.began), 1000 * (ended - first)
    return timings(len(order.prompt.ids), outcome.tokens, prompt_ms, decode_ms)


def _seeded(order: Order, index: int) -> Order:
    """Choices of one request differ, and are the same again for the same seed."""
    seed = order.sampling.seed
    if seed is None or index == 0:
        return order
    return replace(order, sampling=replace(order.sampling, seed=seed + index))


def _conversation(fields: Mapping[str, Any]) -> Conversation:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestFailed("messages has to be a list with one message or more", param="messages")
    choice = fields.get("tool_choice")
    return Conversation(
        messages=messages,
        tools=() if choice == "none" else fields.get("tools") or (),
        enable_thinking=fields.get("enable_thinking"),
        reasoning_effort=fields.get("reasoning_effort"),
        template_fields=fields.get("chat_template_kwargs") or {},
        continues=bool(fields.get("continue_final_message")),
    )


def _stops(fields: Mapping[str, Any]) -> tuple[str, ...]:
    stop = fields.get("stop")
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _refuse_forced_calls(fields: Mapping[str, Any]) -> None:
    """What forces a call is a form of the answer, which the backend sends with it."""
    is_left_open = not fields.get("response_format")
    if is_left_open and fields.get("tool_choice") not in (None, "auto", "none"):
        raise NotHere("a call of a tool can't be forced with this engine", param="tool_choice")


async def _merged(choices: Sequence[AsyncGenerator[bytes]]) -> AsyncGenerator[bytes]:
    """The events of all as they come; the first failure ends all."""
    if len(choices) == 1:
        async with aclosing(choices[0]) as events:
            async for event in events:
                yield event
        return
    told: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def pass_on(events: AsyncIterator[bytes]) -> None:
        try:
            async for event in events:
                told.put_nowait(event)
        finally:
            told.put_nowait(None)

    tasks = [asyncio.create_task(pass_on(events)) for events in choices]
    try:
        left = len(tasks)
        while left:
            next_event = await told.get()
            if next_event is not None:
                yield next_event
                continue
            left -= 1
            for task in tasks:
                if task.done() and not task.cancelled() and (error := task.exception()):
                    raise error
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for events in choices:
            await events.aclose()
