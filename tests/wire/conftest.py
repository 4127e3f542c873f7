"""What the tests over HTTP share."""

import aiohttp
import pytest

# The cases aren't tests by their files' names, and shall tell as much as one where they fail.
pytest.register_assert_rewrite("conformance")


@pytest.fixture
async def session(server):
    """A client of the module's server, with a connection for each request."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        yield session
