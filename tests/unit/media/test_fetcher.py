"""Only the public internet is fetched from, by connections to exactly what was checked."""

import shutil
import ssl
import subprocess
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from eloquio.errors import RemoteMediaFailed, RemoteMediaRefused
from eloquio.media import fetcher
from eloquio.media.fetcher import Fetcher
from eloquio.media.public import is_public
from fixtures.web import answer, web

pytestmark = pytest.mark.anyio

HERE = "127.0.0.1"
PUBLIC = "93.184.216.34"


def resolver(**hosts: list[str]):
    """Resolves `pictures_test` as pictures.test; counts, and takes one list after the other."""

    async def resolve(host: str):
        asked.append(host)
        answers = hosts[host.replace(".", "_")]
        found = answers.pop(0) if isinstance(answers[0], list) else answers
        return [ip_address(address) for address in found]

    asked: list[str] = []
    resolve.asked = asked
    return resolve


@pytest.fixture
def certified(tmp_path):
    """The files of a certificate for pictures.test, and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=pictures.test"]
    command += ["-addext", "subjectAltName=DNS:pictures.test", "-days", "2"]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def allowing_here(address, port) -> bool:
    """The policy that holds, but for this machine's own first address and every port."""
    return str(address) == HERE or is_public(address)


@asynccontextmanager
async def pictures(replies, trust=None):
    """A server known as pictures.test, and a fetcher that may reach it."""
    if isinstance(replies, bytes):
        replies = {"/a.png": replies}
    lookup = replies.get if isinstance(replies, dict) else replies
    async with web(lookup, trust) as server:
        server.url = f"http{'s' if trust else ''}://pictures.test:{server.port}"
        yield server, Fetcher(resolver(pictures_test=[HERE]), allowing_here)


# What is fetched ------------------------------------------------------------------------------


async def test_what_lies_at_an_address_is_fetched_in_the_name_of_its_host():
    async with pictures(answer(body=b"picture")) as (server, fetch):
        assert await fetch.fetch(f"{server.url}/a.png", 100) == b"picture"
    [request] = server.requests
    assert request.startswith("GET /a.png HTTP/1.1\r\n")
    assert f"host: pictures.test:{server.port}\r\n" in request.lower()
    assert "accept-encoding: identity" in request.lower()


async def test_no_fragment_and_nothing_of_the_environment_goes_along(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with pictures({"/a.png?size=2": answer(body=b"picture")}) as (server, fetch):
        assert await fetch.fetch(f"{server.url}/a.png?size=2#part", 100) == b"picture"
    assert "part" not in server.requests[0]


async def test_redirects_are_followed_without_their_cookies():
    replies = {
        "/a.png": answer(302, location="/b.png", set_cookie="who=you"),
        "/b.png": answer(307, location="c.png"),
        "/c.png": answer(body=b"picture"),
    }
    async with pictures(replies) as (server, fetch):
        assert await fetch.fetch(f"{server.url}/a.png", 100) == b"picture"
    assert len(server.requests) == 3
    assert "cookie" not in "".join(server.requests).lower()


async def test_the_next_address_is_asked_when_the_first_cannot_be_connected_to():
    async with web(lambda _: answer(body=b"picture")) as server:
        resolve = resolver(pictures_test=["127.0.0.2", HERE])
        fetch = Fetcher(resolve, lambda address, port: True)
        url = f"http://pictures.test:{server.port}/"
        assert await fetch.fetch(url, 100) == b"picture"


async def test_a_certificate_has_to_be_of_the_host_that_was_asked_for(certified, monkeypatch):
    certificate, key = certified
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(certificate, key)
    names = []
    trust.sni_callback = lambda _socket, name, _context: names.append(name)
    async with pictures(answer(body=b"picture"), trust) as (server, fetch):
        with pytest.raises(RemoteMediaFailed) as refused:
            await fetch.fetch(f"{server.url}/a.png", 100)
        assert "certificate" in refused.value.evidence.lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert await fetch.fetch(f"{server.url}/a.png", 100) == b"picture"
        other = Fetcher(resolver(others_test=[HERE]), allowing_here)
        with pytest.raises(RemoteMediaFailed):
            await other.fetch(f"https://others.test:{server.port}/a.png", 100)
    assert names == ["pictures.test", "pictures.test", "others.test"]


# What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001"),
        *("0177.0.0.1", "0", "0.0.0.0", "localhost", "localhost.", "LOCALHOST", "[::1]", "[::]"),
        *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "169.254.169.254", "[fe80::1]", "10.0.0.1"),
        *("192.168.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "\uff11\uff12\uff17.0.0.1"),
    ],
)
async def test_this_machine_and_its_networks_are_not_fetched_from(host):
    async with web(lambda _: answer(body=b"secret")) as server:
        anywhere = Fetcher(may_connect=lambda address, port: is_public(address))
        for fetch in (anywhere, Fetcher()):
            with pytest.raises((RemoteMediaRefused, RemoteMediaFailed)) as refused:
                await fetch.fetch(f"http://{host}:{server.port}/", 100)
            assert refused.value.status == 400
            assert refused.value.next_step
    assert server.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "FILE:///etc/passwd", "ftp://93.184.216.34/a", "gopher://a.test/"),
        *(
            "unix:/run/docker.sock",
            "javascript:alert(1)",
            "http:///a.png",
            "http:a.png",
            "https://",
        ),
        *("http://user:password@93.184.216.34/a.png", "http://you@93.184.216.34/"),
        *("http://[::1", "http://a.test:99999/", "http://a\n.test/", "//93.184.216.34/a.png"),
        *("http://\ud800.test/", "http://a.test:0/", "http://" + "a" * 70_000),
    ],
)
async def test_an_address_of_any_other_kind_is_refused(url):
    with pytest.raises(RemoteMediaRefused):
        await Fetcher(resolver(a_test=[PUBLIC])).fetch(url, 100)


@pytest.mark.parametrize("port", [22, 81, 6379, 8642])
async def test_a_public_address_is_asked_at_the_ports_of_the_web_only(port):
    with pytest.raises(RemoteMediaRefused):
        await Fetcher(resolver(a_test=[PUBLIC])).fetch(f"http://a.test:{port}/", 100)


async def test_a_host_with_one_private_address_is_refused_whole():
    async with web(lambda _: answer(body=b"secret")) as server:
        fetch = Fetcher(resolver(a_test=[HERE, "10.0.0.1"]), allowing_here)
        with pytest.raises(RemoteMediaRefused):
            await fetch.fetch(f"http://a.test:{server.port}/", 100)
    assert server.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.2/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/"),
        *("//10.0.0.1/", "file:///etc/passwd", "http://user:password@pictures.test/"),
        *("http://[::1", "http://a\xff\x7f/", "data:image/png;base64,AAAA", "http://10.0.0.1:0/"),
    ],
)
async def test_a_redirect_to_where_nothing_is_fetched_from_is_refused(location):
    async with pictures({"/a.png": answer(302, location=location)}) as (server, _):
        fetch = Fetcher(may_connect=allowing_here)
        with pytest.raises(RemoteMediaRefused):
            await fetch.fetch(f"http://{HERE}:{server.port}/a.png", 100)
    assert server.connections == 1


async def test_a_name_that_changes_its_meaning_after_the_check_changes_nothing():
    async with web(lambda _: answer(body=b"picture")) as server:
        resolve = resolver(a_test=[[HERE], ["10.0.0.1"]])
        fetch = Fetcher(resolve, allowing_here)
        assert await fetch.fetch(f"http://a.test:{server.port}/", 100) == b"picture"
        assert resolve.asked == ["a.test"]
        with pytest.raises(RemoteMediaRefused):
            await fetch.fetch(f"http://a.test:{server.port}/", 100)


async def test_a_redirect_to_the_same_host_is_checked_anew():
    async with web(lambda _: answer(302, location="/again")) as server:
        fetch = Fetcher(resolver(a_test=[[HERE], ["10.0.0.1"]]), allowing_here)
        with pytest.raises(RemoteMediaRefused):
            await fetch.fetch(f"http://a.test:{server.port}/", 100)
    assert server.connections == 1


# What fails -----------------------------------------------------------------------------------


async def test_a_circle_of_redirects_ends():
    async with pictures(answer(302, location="/a.png")) as (server, fetch):
        with pytest.raises(RemoteMediaFailed):
            await fetch.fetch(f"{server.url}/a.png", 100)
    assert server.connections == 1 + fetcher.MOST_REDIRECTS


@pytest.mark.parametrize(
    "reply",
    [
        answer(404, b"nothing here"),
        answer(500),
        answer(204),
        answer(302),
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\ncut off",
        b"nonsense\r\n\r\n",
        b"",
    ],
    ids=["missing", "failed", "empty", "nowhere", "cut off", "no HTTP", "nothing"],
)
async def test_an_answer_without_what_was_asked_for_is_a_failure(reply):
    async with pictures(reply) as (server, fetch):
        with pytest.raises(RemoteMediaFailed) as failed:
            await fetch.fetch(f"{server.url}/a.png", 100)
    assert failed.value.status == 400
    assert "pictures.test" in failed.value.message


@pytest.mark.parametrize(
    "reply",
    [
        answer(body=b"x" * 101),
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b"x" * 5000,
        b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n" + b"x" * 101,
    ],
    ids=["told", "not told", "endless"],
)
async def test_no_more_is_taken_than_was_wanted(reply):
    async with pictures(reply) as (server, fetch):
        with pytest.raises(RemoteMediaFailed) as failed:
            await fetch.fetch(f"{server.url}/a.png", 100)
    assert "100 bytes" in failed.value.message


async def test_a_server_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(fetcher, "TOTAL_SECONDS", 0.3)
    async with pictures({}) as (server, fetch):
        with pytest.raises(RemoteMediaFailed):
            await fetch.fetch(f"{server.url}/a.png", 100)


async def test_a_host_that_does_not_exist_or_listen_is_a_failure():
    with pytest.raises(RemoteMediaFailed):
        await Fetcher().fetch("http://nowhere.invalid/a.png", 100)
    async with pictures({}) as (server, fetch):
        port = server.port
    with pytest.raises(RemoteMediaFailed):
        await fetch.fetch(f"http://pictures.test:{port}/a.png", 100)
