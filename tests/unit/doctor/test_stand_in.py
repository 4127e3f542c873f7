"""The parts of which the fault suite is made."""

import json
import subprocess
import sys

import gguf
import pytest

from eloquio.doctor.faults import gguf_file, stand_in
from eloquio.doctor.faults.program import notes
from eloquio.doctor.faults.scenario import Broken
from eloquio.doctor.faults.stream import Stream
from eloquio.models.catalog import Catalog
from eloquio.settings import Settings


def test_the_smallest_model_is_one_for_llama_cpps_own_reader_too(tmp_path):
    reader = gguf.GGUFReader(gguf_file.write_model(tmp_path / "a.gguf", weights_bytes=4096))
    assert reader.get_field("general.architecture").contents() == "llama"
    [tensor] = reader.tensors
    assert (tensor.name, tensor.n_bytes) == ("blk.0.weight", 4096)


def test_the_smallest_model_is_listed_with_the_projector_beside_it(tmp_path):
    gguf_file.write_model(tmp_path / "shelf" / "a.gguf")
    projector = gguf_file.write_projector(tmp_path / "shelf" / "mmproj-a.gguf")
    settings = Settings(home=tmp_path, hf_home=tmp_path / "hf")
    [entry] = Catalog(settings, lambda: (tmp_path / "shelf",)).scan()
    assert (entry.id, entry.problem, entry.files.projector) == ("a", None, projector)


def test_a_word_that_no_stand_in_knows_is_an_error(tmp_path):
    with pytest.raises(TypeError, match="sulks"):
        stand_in.write(tmp_path / "llama-server", sulks=True)
    with pytest.raises(TypeError, match="sulks"):
        stand_in.write_for(tmp_path / "a.gguf", sulks=True)


def test_a_stand_in_notes_its_starts_and_heeds_what_its_model_says(tmp_path):
    program = stand_in.write(tmp_path / "llama-server", says=["from the program"], exits=1)
    model = gguf_file.write_model(tmp_path / "a.gguf")
    stand_in.write_for(model, says=["from the model"])
    command = [program, "--model", model, "--alias", "a"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "from the model\n")
    [start] = notes(program)
    assert (start["event"], start["model"]) == ("start", "a")


def test_a_stand_in_fails_as_often_as_it_was_told(tmp_path):
    program = stand_in.write(tmp_path / "llama-server", fails_starts=2, exits=7)
    command = [program, "--model", "a.gguf", "--alias", "a"]
    runs = [subprocess.run(command, capture_output=True, check=False) for _ in range(3)]
    assert [run.returncode for run in runs] == [1, 1, 7]


class Reply:
    """A streamed reply of these lines."""

    status = 200

    def __init__(self, *lines):
        self._lines = iter(lines)
        self.content = self

    async def readline(self):
        return next(self._lines, b"")


@pytest.mark.anyio
async def test_a_stream_is_read_as_a_strict_client_would():
    piece = json.dumps({"choices": [{"delta": {"content": "Oh"}}]}).encode()
    error = json.dumps({"error": {"code": "engine_crashed"}}).encode()
    lines = [b": ping\n", b"\n", b"data: " + piece + b"\n", b"data: " + error + b"\n"]
    stream = await Stream(Reply(*lines)).read()
    assert (stream.text, stream.tokens, stream.is_done) == ("Oh", 1, False)
    assert stream.failure("engine_crashed") == {"code": "engine_crashed"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "lines",
    [
        [b"data: [DONE]\n"],
        [],
        [b'data: {"error": {"code": "engine_crashed"}}\n', b"data: [DONE]\n"],
        [b'data: {"error": {"code": "engine_crashed"}}\n'] * 2,
        [b'data: {"error": {"code": "unexpected_error"}}\n'],
    ],
)
async def test_a_broken_stream_that_ends_in_any_other_way_breaks_the_promise(lines):
    stream = await Stream(Reply(*lines)).read()
    with pytest.raises(Broken):
        stream.failure("engine_crashed")


def test_a_stand_in_runs_from_a_folder_and_by_a_python_with_a_space_in_their_names(
    tmp_path, monkeypatch
):
    python = tmp_path / "some python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr("sys.executable", str(python))
    program = stand_in.write(tmp_path / "its folder" / "llama-server", text="it's 你好")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    assert "--alias" in told.stdout
