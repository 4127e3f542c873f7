"""The command line: parses and calls. What it calls is imported when it is called, since nobody
who starts the server should wait for what the other commands need."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eloquio.settings import Settings

if TYPE_CHECKING:
    from eloquio.terminal.client import Client

app = typer.Typer(
    name="eloquio",
    help="A studio for open models that runs on your own machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[
    str, typer.Argument(help="An id as `GET /v1/models` lists it, or a path to a model.")
]
Home = Annotated[
    Path | None, typer.Option("--home", help="Where Eloquio keeps everything (ELOQUIO_HOME).")
]
AsJson = Annotated[bool, typer.Option("--json", help="For a script to read.")]


def main() -> None:
    app(prog_name="eloquio")


@app.callback(invoke_without_command=True)
def _eloquio(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"eloquio {version_of('eloquio')}")
        raise typer.Exit


@app.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="The address to listen at; others may ask with the key.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes any that is free.")] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    home: Home = None,
    model_dir: Annotated[
        list[Path] | None, typer.Option(help="A folder with models; can be given several times.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A name by which this server may be asked.")
    ] = None,
    load_on_start: Annotated[
        bool | None, typer.Option(help="Load the last model, or the built-in one, at once.")
    ] = None,
    idle_unload: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Unload a model after so long without a request."),
    ] = None,
    llama_server: Annotated[Path | None, typer.Option(help="The llama-server to run.")] = None,
    log: Annotated[str | None, typer.Option(help="auto, text or json.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve the page and the API until Ctrl-C."""
    import sys

    settings = _settings(
        host=host,
        port=port,
        home=home,
        model_dirs=tuple(folder.expanduser().absolute() for folder in model_dir or ()) or None,
        allowed_hosts=tuple(allowed_host or ()) or None,
        load_on_start=load_on_start,
        idle_unload_seconds=idle_unload,
        llama_server_path=llama_server and llama_server.absolute(),
        log=log,
        log_level=log_level,
    )
    # Until it listens: looking for garbage among what is imported takes a tenth of the start.
    gc.disable()
    from eloquio.server import CannotListen
    from eloquio.server import serve as serve_until_ended

    try:
        status = serve_until_ended(settings, open_browser=browser and sys.stdout.isatty())
    except CannotListen as reason:
        typer.echo(f"{reason.message} {reason.next_step}", err=True)
        raise typer.Exit(1) from None
    except OSError as failure:
        typer.echo(
            f"Eloquio's home {settings.home} can't be used: {failure.strerror}."
            " Mend that, or choose another with --home.",
            err=True,
        )
        raise typer.Exit(1) from None
    raise typer.Exit(status)


@app.command()
def load(
    model: Model,
    context: Annotated[
        int, typer.Option(min=0, help="The context in tokens; 0 takes the model's own.")
    ] = 0,
    kv: Annotated[
        str | None, typer.Option(metavar="TYPE", help="The KV cache's type: f16, q8_0, q4_0 …")
    ] = None,
    gpu_layers: Annotated[
        int | None, typer.Option(min=0, help="How many layers the GPU holds.")
    ] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="How many answers at a time.")] = None,
    keep_others: Annotated[
        bool, typer.Option("--keep-others", help="Leave other models loaded.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="End the answers under way.")] = False,
    unload_after: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Unload it after so long without a request; 0 never."),
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Only an unload by name ends it.")] = False,
) -> None:
    """Load a model and wait until it can answer."""
    body = {
        "model_path": _model_path(model),
        "max_seq_length": context,
        "cache_type_kv": kv,
        "gpu_layers": gpu_layers,
        "n_parallel": parallel,
        "keep_others": keep_others,
        "force": force,
        "ttl_s": unload_after,
        "pin": pin,
    }
    with _plain_failures():
        from eloquio.terminal.loading import load as load_with_progress
        from eloquio.terminal.text import duration

        reply = load_with_progress(_client(), body)
        if reply["status"] == "already_loaded":
            typer.echo(f"{reply['model']} is loaded already.")
        else:
            typer.echo(f"{reply['model']} is loaded, in {duration(reply['load_seconds'])}.")
        for warning in reply["warnings"]:
            typer.echo(warning, err=True)


@app.command()
def unload(
    model: Annotated[str | None, typer.Argument(help="By default the only one loaded.")] = None,
) -> None:
    """Unload a model, whatever it is doing."""
    with _plain_failures():
        path = None if model is None else _model_path(model)
        reply = _client().post("/v1/unload", {"model_path": path})
        if reply["status"] == "unloaded":
            typer.echo(f"{reply['model']} is unloaded.")
        else:
            typer.echo("It isn't loaded." if model else "No model is loaded.")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say which models are loaded and what they do."""
    with _plain_failures():
        from eloquio.terminal.text import print_status

        reply = _client().get("/v1/status")
        if as_json:
            _print_json(reply)
        else:
            print_status(reply)


@app.command()
def chat(
    model: Annotated[str | None, typer.Argument(help="By default the one that is loaded.")] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="Ask this only, and end.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="The system prompt.")] = None,
) -> None:
    """Chat with a model. Ctrl-C ends the answer, and at the prompt the chat."""
    with _plain_failures():
        from eloquio.terminal.chat import Conversation, converse
        from eloquio.terminal.models import model_to_ask

        client = _client()
        path = None if model is None else _model_path(model)
        conversation = Conversation(client, model_to_ask(client, path), system=system)
        if message is None:
            converse(conversation)
        else:
            conversation.ask(message)


@app.command()
def doctor(
    home: Home = None,
    as_json: AsJson = False,
    faults: Annotated[
        bool,
        typer.Option("--faults", help="Break engines on purpose, and see that all promises hold."),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the faults, those with this in their names."),
    ] = None,
) -> None:
    """Look at engine, devices, folders and models, and prove the engine by a real answer."""
    if only is not None and not faults:
        raise typer.BadParameter(
            "It chooses among the faults: give --faults too.", param_hint="--only"
        )
    if faults:
        from eloquio.terminal.doctor_faults import prove

        raise typer.Exit(prove(only or "", as_json=as_json))
    settings = _settings(home=home)
    from eloquio.terminal.doctor import examine

    raise typer.Exit(examine(settings, as_json=as_json))


@app.command()
def key(home: Home = None) -> None:
    """Print the key that Eloquio asks for beyond this machine; make it if there is none."""
    from eloquio.auth.keys import own_key

    typer.echo(own_key(_settings(home=home)))


@app.command()
def openapi() -> None:
    """Print the API's description as OpenAPI JSON."""
    from eloquio.app import create_app

    # For this machine alone, since a key would be made for any other.
    _print_json(create_app(_settings(host="127.0.0.1")).openapi(), indent=1)


def _settings(**flags: object) -> Settings:
    """The flags that were given, over the environment."""
    from pydantic import ValidationError

    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        for problem in error.errors(include_input=False, include_url=False):
            name = ".".join(str(part) for part in problem["loc"])
            typer.echo(f"The setting {name} is wrong: {problem['msg']}.", err=True)
        raise typer.Exit(2) from None


def _client() -> "Client":
    from eloquio.terminal.client import Client

    return Client(_settings())


def _model_path(model: str) -> str:
    """A path is made absolute: the server stands in another folder than the person."""
    path = Path(model).expanduser()
    return str(path.absolute()) if path.exists() else model


@contextmanager
def _plain_failures() -> Iterator[None]:
    """What the server refuses is said in its words, and ends with status 1."""
    from eloquio.terminal.client import Refused
    from eloquio.terminal.text import print_refusal

    try:
        yield
    except Refused as error:
        print_refusal(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _print_json(value: object, *, indent: int = 2) -> None:
    import json

    typer.echo(json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False))
