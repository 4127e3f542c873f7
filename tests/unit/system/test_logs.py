"""The logs: whole, with the request's id, and without secrets."""

import json
import logging
import stat

import pytest
import structlog
from structlog.contextvars import bound_contextvars

from eloquio.logging import MASK, Redactor, start_logs
from eloquio.settings import Settings

TOKEN = "hf_" + "a1B2" * 8
KEY = "elq-" + "x_Y-" * 10


@pytest.fixture(autouse=True)
def as_before():
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "home", log="json", api_key="my own words")


@pytest.fixture
def written(settings):
    """Log with this function; what then stands in the file."""

    def written(log) -> list[dict]:
        logs = start_logs(settings)
        log(structlog.get_logger("eloquio.test"))
        logs.close()
        text = (settings.home / "logs" / "eloquio.log").read_text()
        return [json.loads(line) for line in text.splitlines()]

    return written


def test_a_line_says_when_what_and_for_which_request(written):
    def log(logger):
        with bound_contextvars(request_id="mine"):
            logger.info("loaded", model="tiny")

    [line] = written(log)
    assert line["event"] == "loaded"
    assert line["model"] == "tiny"
    assert line["request_id"] == "mine"
    assert line["level"] == "info"
    assert line["logger"] == "eloquio.test"
    assert line["timestamp"].endswith("Z")


def test_a_librarys_line_bears_the_requests_id_too(written):
    def log(logger):
        with bound_contextvars(request_id="mine"):
            logging.getLogger("some.library").warning("it took %d s", 3)

    [line] = written(log)
    assert (line["event"], line["request_id"]) == ("it took 3 s", "mine")


def test_everything_is_written_before_the_end(written):
    lines = written(lambda logger: [logger.info("step", n=n) for n in range(500)])
    assert [line["n"] for line in lines] == list(range(500))


def test_a_traceback_stands_in_one_line(written):
    def log(logger):
        try:
            raise ValueError(f"refused {TOKEN}")
        except ValueError:
            logger.exception("failed")

    [line] = written(log)
    assert "ValueError: refused" in line["exception"]
    assert TOKEN not in line["exception"]


def test_what_is_below_the_level_is_left_out(written):
    assert written(lambda logger: logger.debug("detail")) == []


def test_no_secret_is_written(written, settings):
    def log(logger):
        logger.info(
            f"asked with {TOKEN}",
            hf_token="short",
            Authorization="Basic eHl6",
            headers={"X-Api-Key": "abc", "cookie": "eloquio_session=1.2.3", "accept": "*/*"},
            argv=["llama-server", "--api-key", KEY],
            nested=[{"token": "t"}],
            said="Bearer sk-123 my own words",
        )
        logging.getLogger("some.library").info("sent %s", KEY)

    first, second = written(log)
    text = json.dumps([first, second], ensure_ascii=False)
    for secret in (TOKEN, KEY, "short", "eHl6", "abc", "1.2.3", '"t"', "sk-123", "my own words"):
        assert secret not in text
    assert first["headers"]["accept"] == "*/*"
    assert first["argv"] == ["llama-server", "--api-key", MASK]
    assert second["event"] == f"sent {MASK}"


@pytest.mark.parametrize("harmless", ["hf_hub", "elq-", "a token of thanks", "max_tokens=5", ""])
def test_what_is_no_secret_stays(harmless):
    assert Redactor()(None, "info", {"event": harmless}) == {"event": harmless}


def test_counts_named_like_tokens_stay():
    event = {"event": "done", "tokens": 12, "prompt_tokens": 3}
    assert Redactor()(None, "info", event) == event


def test_only_the_owner_reads_the_logs(written, settings):
    written(lambda logger: logger.info("x"))
    assert stat.S_IMODE((settings.home / "logs").stat().st_mode) == 0o700


def test_where_no_file_can_be_written_the_error_output_still_gets_all(tmp_path, capsys):
    (tmp_path / "home").write_text("a file in the place of the folder")
    logs = start_logs(Settings(home=tmp_path / "home", log="json"))
    structlog.get_logger("eloquio.test").info("still here")
    logs.close()
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == ["no log file is written", "still here"]


def test_a_persons_terminal_gets_lines_to_read(tmp_path, capsys):
    logs = start_logs(Settings(home=tmp_path, log="text"))
    structlog.get_logger("eloquio.test").warning("slow disk", seconds=3)
    logs.close()
    line = capsys.readouterr().err
    assert "slow disk" in line
    assert "seconds=3" in line
    assert not line.startswith("{")
