"""Which model a command means."""

from eloquio.terminal.client import Client, Refused
from eloquio.terminal.loading import load


def model_to_ask(client: Client, wanted: str | None) -> str:
    """The id of the wanted model, loaded if need be; without one, of the model that is loaded."""
    status = client.get("/v1/status")
    if wanted is None:
        if status["active_model"] is None:
            raise Refused("No model is loaded.", next_step="Load one with: eloquio load MODEL")
        return str(status["active_model"])
    if wanted in status["loaded"]:
        return wanted
    return str(load(client, {"model_path": wanted})["model"])
