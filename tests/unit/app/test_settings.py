"""The settings read the environment as those do whose variables they are."""

from pathlib import Path

from eloquio.settings import Settings


def test_the_hugging_face_cache_is_where_its_own_libraries_look(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings().hub_cache == tmp_path / ".cache/huggingface/hub"

    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert Settings().hub_cache == Path("/cache/huggingface/hub")

    monkeypatch.setenv("HF_HOME", "/hf")
    assert Settings().hub_cache == Path("/hf/hub")

    monkeypatch.setenv("HF_HUB_CACHE", "/hub")
    assert Settings().hub_cache == Path("/hub")
