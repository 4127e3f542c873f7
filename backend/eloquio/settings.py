"""The settings of one Eloquio: the only reader of the environment."""

import os
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

BUILTIN_MODEL = "builtin/smollm2-135m-instruct"
"""What set-up brings, so that a first start has something to answer with."""


def _default_home() -> Path:
    return Path(platformdirs.user_data_dir("eloquio", appauthor=False))


def _default_hf_home() -> Path:
    """Where Hugging Face's own libraries look."""
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"


class Settings(BaseSettings):
    """Every field is also a variable `ELOQUIO_…`; the command line's flags override it."""

    model_config = SettingsConfigDict(
        env_prefix="ELOQUIO_",
        frozen=True,
        populate_by_name=True,
        extra="ignore",
        env_ignore_empty=True,
    )

    home: Path = Field(default_factory=_default_home)
    """Everything Eloquio keeps; built-in models lie in `home/models`."""
    host: str = "127.0.0.1"
    port: int = Field(default=8642, ge=0, le=65535)
    model_dirs: Annotated[tuple[Path, ...], NoDecode] = ()
    """Folders with models, separated as PATH is."""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Names beside localhost and IP addresses under which this server may be asked, by commas."""
    api_key: SecretStr | None = None
    """Asked for on every route when set, and made by itself when `host` isn't loopback."""
    page_dir: Path | None = None
    """The built page; by default the one of this checkout or package."""
    load_on_start: bool = True
    """Load the last model, or on the first run the built-in one, when the server starts."""

    log: Literal["auto", "text", "json"] = "auto"
    """Lines for people or for machines; auto looks whether the error output is a terminal."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    llama_server_path: Path | None = Field(
        default=None, validation_alias=AliasChoices("LLAMA_SERVER_PATH", "llama_server_path")
    )
    worker_python: Path | None = None
    """The Python of the torch environment; by default that of the checkout's `.venv-worker`."""
    hf_home: Path = Field(
        default_factory=_default_hf_home, validation_alias=AliasChoices("HF_HOME", "hf_home")
    )
    hf_hub_cache: Path | None = Field(
        default=None, validation_alias=AliasChoices("HF_HUB_CACHE", "hf_hub_cache")
    )

    runtime_dir: Path | None = Field(
        default=None, validation_alias=AliasChoices("XDG_RUNTIME_DIR", "runtime_dir")
    )
    """For the engines' sockets, where `home` is too long a path for one."""

    start_inactivity_seconds: float = Field(default=120.0, gt=0)
    """A start that shows no sign of life for so long has failed; one that moves may take hours."""
    stop_grace_seconds: float = Field(default=3.0, gt=0)
    """From SIGTERM to SIGKILL."""
    max_queued: int = Field(default=512, ge=0)
    """How many requests may wait for one model before the next is refused."""
    stalled_reader_seconds: float = Field(default=60.0, gt=0)
    """A client that takes nothing of its reply for so long is treated as one that has left."""
    allow_remote_media: bool = False
    """Fetch a picture from the public address that a request names."""
    idle_unload_seconds: float | None = Field(default=None, gt=0)
    """Unload a model after so long without a request; by default never. A load can differ."""

    @field_validator("model_dirs", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(Path(part).expanduser() for part in value.split(os.pathsep) if part)
        return value

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("home", "hf_home", "hf_hub_cache", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().absolute()

    @property
    def models_dir(self) -> Path:
        return self.home / "models"

    @property
    def hub_cache(self) -> Path:
        return self.hf_hub_cache or self.hf_home / "hub"
