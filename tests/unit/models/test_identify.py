"""What kind of model a header tells of, and what can't be run alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eloquio.errors import ModelFileInvalid, ModelKindUnsupported
from eloquio.models.gguf import read_header
from eloquio.models.identify import identify, is_projector
from fixtures.gguf_files import (
    write_adapter,
    write_embedding_model,
    write_file,
    write_importance_matrix,
    write_model,
    write_projector,
    write_reranker,
    write_shards,
    write_vocabulary,
)


@pytest.mark.parametrize(
    ("architecture", "metadata", "task"),
    [
        ("llama", {}, "chat"),
        ("an-architecture-of-tomorrow", {}, "chat"),
        ("qwen3", {}, "chat"),
        ("qwen3", {"qwen3.pooling_type": 0}, "chat"),
        ("qwen3", {"qwen3.pooling_type": 3}, "embedding"),
        ("qwen3", {"qwen3.pooling_type": 4}, "rerank"),
        ("qwen3", {"qwen3.pooling_type": 99}, "chat"),
        ("bert", {}, "embedding"),
        ("nomic-bert", {"nomic-bert.pooling_type": 1}, "embedding"),
        ("jina-bert-v2", {}, "embedding"),
        ("gemma-embedding", {"gemma-embedding.pooling_type": 1}, "embedding"),
        ("llama", {"general.type": None}, "chat"),
    ],
)
def test_the_task_is_known_by_architecture_and_pooling(
    tmp_path: Path, architecture: str, metadata: dict[str, Any], task: str
) -> None:
    path = write_model(tmp_path / "m.gguf", architecture=architecture, metadata=metadata)

    assert identify(read_header(path), path.name) == task


def test_an_encoder_embeds_or_ranks(tmp_path: Path) -> None:
    embedder = read_header(write_embedding_model(tmp_path / "embedder.gguf"))
    reranker = read_header(write_reranker(tmp_path / "reranker.gguf"))

    assert identify(embedder, "embedder.gguf") == "embedding"
    assert identify(reranker, "reranker.gguf") == "rerank"


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (write_projector, "is a projector"),
        (write_adapter, "is a LoRA adapter"),
        (write_importance_matrix, "is an importance matrix"),
        (write_vocabulary, "a vocabulary without weights"),
    ],
)
def test_what_cant_be_run_alone_is_refused_by_its_kind(
    tmp_path: Path, write: Callable[[Path], Path], words: str
) -> None:
    path = write(tmp_path / "m.gguf")

    with pytest.raises(
        ModelKindUnsupported, match=rf"m\.gguf .*{words}|m\.gguf holds {words}"
    ) as c:
        identify(read_header(path), path.name)

    assert c.value.next_step


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        ("dream", "writes by diffusion"),
        ("llada", "writes by diffusion"),
        ("flux", "makes pictures"),
        ("wavtokenizer-dec", "tokens into sound"),
        ("eagle3", "draft head"),
    ],
)
def test_models_no_engine_here_serves_are_refused(
    tmp_path: Path, architecture: str, words: str
) -> None:
    path = write_model(tmp_path / "m.gguf", architecture=architecture)

    with pytest.raises(ModelKindUnsupported, match=words):
        identify(read_header(path), path.name)


def test_weights_without_a_tokenizer_are_no_language_model(tmp_path: Path) -> None:
    path = write_file(tmp_path / "m.gguf", architecture="unheard-of", metadata={}, tensors=1)

    with pytest.raises(ModelKindUnsupported, match="has no tokenizer"):
        identify(read_header(path), path.name)


def test_a_file_without_an_architecture_is_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path / "m.gguf", architecture="", metadata={"x": 1}, tensors=1)

    with pytest.raises(ModelKindUnsupported, match="what architecture"):
        identify(read_header(path), path.name)


def test_more_layers_than_any_model_has_are_refused(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf", block_count=1001)

    with pytest.raises(ModelFileInvalid, match="1001 layers"):
        identify(read_header(path), path.name)


def test_a_first_shard_that_holds_only_metadata_is_no_mere_vocabulary(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf", metadata={"split.count": 3}, tensors=0)

    assert identify(read_header(path), path.name) == "chat"
    assert not is_projector(read_header(write_shards(tmp_path)[0]))
