"""A conversation in the terminal."""

import contextlib
import sys
from collections.abc import Callable

from eloquio.terminal.client import Client, Json, Refused, refusal_of
from eloquio.terminal.text import error_output, print_refusal, printable, write

HELP = "/system TEXT sets the system prompt, /clear starts anew, /exit or Ctrl-D ends."


class Conversation:
    """The messages so far, and the model that answers them."""

    def __init__(self, client: Client, model: str, *, system: str | None = None) -> None:
        self._client = client
        self._model = model
        self._system = system
        self._messages: list[Json] = []

    def set_system(self, text: str) -> None:
        self._system = text or None

    def clear(self) -> None:
        self._messages = []

    def ask(self, text: str) -> Json:
        """Ask, write the answer as it comes, and return the last event's usage and timings.

        Ctrl-C ends the answer; what there is of it stays in the conversation. A question that
        failed doesn't.
        """
        question = {"role": "user", "content": text}
        system = [{"role": "system", "content": self._system}] if self._system else []
        body = {
            "model": self._model,
            "messages": [*system, *self._messages, question],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        answer: list[str] = []
        last: Json = {}
        with (
            contextlib.suppress(KeyboardInterrupt),
            contextlib.closing(self._client.stream("/v1/chat/completions", body)) as events,
        ):
            for event in events:
                if "error" in event:
                    write("\n")
                    raise refusal_of(event["error"])
                last = event
                _write_deltas(event, answer)
        write("\n")
        self._messages.append(question)
        if answer:
            self._messages.append({"role": "assistant", "content": "".join(answer)})
        return last


def _write_deltas(event: Json, answer: list[str]) -> None:
    for choice in event.get("choices", ()):
        delta = choice["delta"]
        if thought := delta.get("reasoning_content"):
            error_output().print(
                printable(thought), end="", style="dim", markup=False, highlight=False
            )
        if content := delta.get("content"):
            answer.append(content)
            write(content)


def converse(conversation: Conversation, ask: Callable[[str], str] = input) -> None:
    """Read and answer until the person ends it."""
    # So that the arrow keys edit the line and bring back earlier ones.
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401
    console = error_output()
    if sys.stdin.isatty():
        console.print(HELP, style="dim")
    while (line := _read(ask)) is not None:
        match line.strip().split(maxsplit=1):
            case []:
                continue
            case ["/exit" | "/quit", *_]:
                return
            case ["/clear", *_]:
                conversation.clear()
            case ["/system", *text]:
                conversation.set_system("".join(text))
            case [command, *_] if command.startswith("/"):
                console.print(HELP, style="dim")
            case _:
                _answer(conversation, line)


def _answer(conversation: Conversation, line: str) -> None:
    try:
        last = conversation.ask(line)
    except Refused as error:
        print_refusal(error)
        return
    timings = last.get("timings") or {}
    if sys.stdout.isatty() and timings.get("predicted_per_second"):
        words = f"{timings['predicted_n']} tokens, {timings['predicted_per_second']:.0f} a second"
        error_output().print(words, style="dim")


def _read(ask: Callable[[str], str]) -> str | None:
    """The person's next line; None when they end it by Ctrl-D, or by Ctrl-C at the prompt."""
    try:
        return ask("> " if sys.stdin.isatty() else "")
    except (EOFError, KeyboardInterrupt):
        write("\n" if sys.stdin.isatty() else "")
        return None
