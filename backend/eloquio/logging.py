"""Logs: lines for a person at a terminal, JSON for machines, and a file in the home folder.

Whoever logs only puts the record on a queue; a thread writes it, so that the event loop never waits
for a disk or a terminal. The last step before writing takes keys and tokens out.
"""

import asyncio
import logging
import queue
import re
import sys
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler

import structlog
from structlog.contextvars import get_contextvars, merge_contextvars
from structlog.stdlib import ProcessorFormatter
from structlog.types import EventDict, Processor

from eloquio.private_files import private_folder
from eloquio.settings import Settings

FILE_BYTES = 5 * 1024 * 1024
FILES_KEPT = 3

MASK = "•••"
_SECRET_NAMES = frozenset(
    ("token", "authorization", "api_key", "x-api-key", "hf_token", "cookie", "password")
)
_SECRET_SHAPES = re.compile(r"\b(?:hf_[A-Za-z0-9]{8,}|elq-[A-Za-z0-9_-]{8,})|(?<=[Bb]earer )\S+")


class Logs:
    """The logs of this process, from `start_logs` until `close`."""

    def __init__(self, handlers: list[logging.Handler]) -> None:
        records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        self._handlers = handlers
        self._listener = QueueListener(records, *handlers, respect_handler_level=True)
        self._listener.start()
        logging.getLogger().handlers = [_ContextQueueHandler(records)]

    def close(self) -> None:
        """Write what is on the queue. What is logged afterwards is written at once."""
        if logging.getLogger().handlers != self._handlers:
            logging.getLogger().handlers = self._handlers
            self._listener.stop()


def start_logs(settings: Settings) -> Logs:
    """Send every log of this process, those of libraries too, where the settings say.

    One that can't write into the home folder still logs to the error output, and says so there.
    """
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            merge_contextvars,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.ExceptionRenderer(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    redact = Redactor([settings.api_key.get_secret_value()] if settings.api_key else [])
    handlers: list[logging.Handler] = [_console(settings, redact)]
    problem: OSError | None = None
    try:
        handlers.append(_file(settings, redact))
    except OSError as error:
        problem = error
    logs = Logs(handlers)
    logging.getLogger().setLevel(level)
    _route_libraries()
    if problem is not None:
        structlog.get_logger(__name__).warning("no log file is written", reason=problem.strerror)
    return logs


class Redactor:
    """A structlog processor that masks secrets by the name of their field and by their shape."""

    def __init__(self, secrets: list[str] | None = None) -> None:
        self._secrets = [secret for secret in secrets or [] if secret]

    def __call__(self, logger: object, method: str, event: EventDict) -> EventDict:
        return {name: self._masked(name, value) for name, value in event.items()}

    def _masked(self, name: object, value: object) -> object:
        if isinstance(name, str) and name.lower() in _SECRET_NAMES and value is not None:
            return MASK
        match value:
            case str():
                text = value
                for secret in self._secrets:
                    text = text.replace(secret, MASK)
                return _SECRET_SHAPES.sub(MASK, text)
            case dict():
                return {key: self._masked(key, item) for key, item in value.items()}
            case list() | tuple():
                return [self._masked(None, item) for item in value]
            case _:
                return value


class _ContextQueueHandler(QueueHandler):
    """Hands records over as they are, with the request's context, which the thread can't see."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        record.context = get_contextvars()
        return record


def _add_context(logger: object, method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    return {**getattr(record, "context", {}), **event}


def _formatter(redact: Redactor, renderer: Processor) -> ProcessorFormatter:
    return ProcessorFormatter(
        foreign_pre_chain=[
            _add_context,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(),
        ],
        processors=[ProcessorFormatter.remove_processors_meta, redact, renderer],
    )


def _console(settings: Settings, redact: Redactor) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    is_terminal = sys.stderr.isatty()
    as_text = settings.log == "text" or (settings.log == "auto" and is_terminal)
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(
            colors=is_terminal, exception_formatter=structlog.dev.plain_traceback
        )
        if as_text
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    handler.setFormatter(_formatter(redact, renderer))
    return handler


def _file(settings: Settings, redact: Redactor) -> logging.Handler:
    folder = private_folder(private_folder(settings.home) / "logs")
    handler = RotatingFileHandler(
        folder / "eloquio.log", maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
    )
    renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    handler.setFormatter(_formatter(redact, renderer))
    return handler


def _route_libraries() -> None:
    """uvicorn through our handlers, without its own access lines: the guard writes those."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        library = logging.getLogger(name)
        library.handlers = []
        library.propagate = name != "uvicorn.access"
    # Its warnings are about what strangers send, and anyone could fill the disk with them.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
    for name in ("httpx", "httpx2", "httpcore", "asyncio", "aiohttp.access"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """A stream that is cut when the server ends has not failed."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
