"""How soon a model that failed is started again: nobody can make it start over and over."""

import math
from collections.abc import Callable

from eloquio.errors import EloquioError, EngineUnavailable

_BACK_OFF_SECONDS = (5.0, 10.0, 20.0, 40.0, 60.0)
# A crash after so long in service is a new one, not the last one's echo.
_HEALTHY_SECONDS = 60.0


class BackOff:
    """A model's failures in a row. It outlives the engine that failed, and ends with a new load."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._not_before = 0.0
        self._last_error: EloquioError | None = None

    @property
    def wait_seconds(self) -> float:
        return max(0.0, self._not_before - self._clock())

    def remember(self, error: EloquioError, served_seconds: float | None) -> None:
        """`served_seconds` is None when it failed before it served."""
        is_new = served_seconds is not None and served_seconds > _HEALTHY_SECONDS
        self._failures = 1 if is_new else self._failures + 1
        self._not_before = self._clock() + back_off_seconds(self._failures, served_seconds)
        self._last_error = error

    def refuse(self) -> None:
        """EngineUnavailable, with the failure's own words, until it may be started again."""
        if self._last_error is not None and self.wait_seconds > 0:
            raise EngineUnavailable(
                f"The model failed before: {self._last_error.message}",
                evidence=self._last_error.evidence,
                next_step=self._last_error.next_step,
                retry_after_seconds=max(1, math.ceil(self.wait_seconds)),
            )


def back_off_seconds(failures: int, served_seconds: float | None) -> float:
    """How long the next start waits after `failures` in a row.

    `served_seconds` is None when it failed before it served. The first crash of an engine that had
    served is answered by a restart at once.
    """
    if failures == 1 and served_seconds is not None:
        return 0.0
    return _BACK_OFF_SECONDS[min(failures, len(_BACK_OFF_SECONDS)) - 1]
