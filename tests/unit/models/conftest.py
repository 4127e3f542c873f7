"""A catalogue over an empty home, an empty hub cache and one empty folder."""

from pathlib import Path

import pytest

from eloquio.models.catalog import Catalog
from eloquio.settings import Settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "models of mine"
    path.mkdir()
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", hf_home=tmp_path / "hf")


@pytest.fixture
def catalog(settings: Settings, folder: Path) -> Catalog:
    return Catalog(settings, lambda: [folder])
