"""Runs: replies that belong to the server."""

from eloquio.errors.root import EloquioError


class RunNotFound(EloquioError):
    """No run has this id: it was deleted, or newer ones took its place."""

    status = 404
    type = "invalid_request_error"
    code = "run_not_found"
    next_step = "GET /v1/runs lists those that are kept."


class RunCannotContinue(EloquioError):
    """The run is under way, came to its own end, or stopped where no model can be put back."""

    status = 409
    type = "invalid_request_error"
    code = "run_cannot_continue"
    next_step = "Start a new run."


class RunEventsLost(EloquioError):
    """The reader has seen events that were lost with a backend that was killed."""

    status = 409
    type = "invalid_request_error"
    code = "run_events_lost"
    next_step = "Read the run again from its start, without Last-Event-ID."


class RunCancelled(EloquioError):
    """How the events of a cancelled run end."""

    status = 499
    type = "invalid_request_error"
    code = "run_cancelled"
    next_step = "POST to the run's /continue to have the rest of it."


class RunInterrupted(EloquioError):
    """How the events of a run end that was under way when Eloquio ended."""

    status = 503
    code = "run_interrupted"
    next_step = "POST to the run's /continue to have the rest of it."
