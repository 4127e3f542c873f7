"""The least that a server in Python can do between a client and an engine: forward.

Run by uvicorn with the engine's socket in BARE_SOCKET. Eloquio's cost is compared with it, on
a machine whose own speed nobody knows.
"""

import os

import aiohttp

_sessions: list[aiohttp.ClientSession] = []


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    body = (await receive())["body"]
    headers = {"content-type": "application/json"}
    async with _sessions[0].post("/v1/chat/completions", data=body, headers=headers) as reply:
        start = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": start})
        async for chunk in reply.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _live(receive, send):
    await receive()
    connector = aiohttp.UnixConnector(os.environ["BARE_SOCKET"], force_close=True, limit=0)
    _sessions.append(aiohttp.ClientSession("http://engine", connector=connector))
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await _sessions.pop().close()
    await send({"type": "lifespan.shutdown.complete"})
