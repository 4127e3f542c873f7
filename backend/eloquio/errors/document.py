"""`docs/errors.md`, made from the catalogue."""

from collections.abc import Iterator
from types import ModuleType

from eloquio.errors import answering, asking, finding, loading, media, root, runs, starting
from eloquio.errors.root import EloquioError

# In the order in which a person meets them.
_PARTS: tuple[ModuleType, ...] = (asking, media, finding, loading, starting, answering, runs, root)

_INTRODUCTION = """\
# Errors

Made from the catalogue in `backend/eloquio/errors` by `scripts/check --fix`; change it there.

Every route answers a failure with the same shape, and a stream that breaks ends with it:

```json
{"error": {"message": "…", "type": "…", "code": "…", "param": null,
           "evidence": "…", "next_step": "…"}}
```

Below `/v1/messages` the same fields stand in Anthropic's shape, with its names for `type`:
`{"type": "error", "error": {…}, "request_id": "…"}`.

`code` is one of those below and never changes its meaning: it is what a script may branch on. The
`message` says what happened. `evidence`, where there is any, is the engine's own last words and how
it ended. `next_step` says what to do; below stands the general one, which an error may replace by
one that fits better. Where waiting helps, the header `Retry-After` says for how many seconds.

Where no such body came, the page has codes of its own: `server_unreachable` when nothing answered,
`unreadable_reply` when something else did, and `unknown_error`.
"""


def document() -> str:
    """The whole of it, as Markdown."""
    return "\n".join([_INTRODUCTION, *(line for part in _PARTS for line in _lines(part))])


def catalogue() -> list[type[EloquioError]]:
    """Every error that can be raised, in the document's order."""
    return [error for part in _PARTS for error in _errors_of(part)]


def _errors_of(part: ModuleType) -> Iterator[type[EloquioError]]:
    for value in vars(part).values():
        is_error = isinstance(value, type) and issubclass(value, EloquioError)
        if is_error and value is not EloquioError and value.__module__ == part.__name__:
            yield value


def _lines(part: ModuleType) -> Iterator[str]:
    title, _, rest = (part.__doc__ or "").strip().partition("\n\n")
    yield f"## {title.partition(':')[0].rstrip('.')}\n"
    if rest:
        yield f"{rest}\n"
    for error in _errors_of(part):
        yield f"### `{error.code}`\n"
        yield f"{_heading(error)}\n"
        yield f"{_text(error.__doc__)}\n"
        if error.next_step:
            yield f"What to do: {error.next_step}\n"


def _heading(error: type[EloquioError]) -> str:
    parent = error.__mro__[1]
    kind = ""
    if issubclass(parent, EloquioError) and parent is not EloquioError:
        kind = f", a kind of `{parent.code}`"
    return f"Status {error.status}, type `{error.type}`{kind}."


def _text(docstring: str | None) -> str:
    return " ".join((docstring or "").split())
