"""HTTP/1.1 sinks (RFC 9112), by the ``h11`` package: keep-alive, pieces, proxies and upgrades."""

from __future__ import annotations

import base64
import hashlib
from http import HTTPStatus
from urllib.parse import urlsplit

import h11

from controls.recorder.internet.answers import Reply, Request
from controls.recorder.internet.journal import Endpoint
from controls.recorder.internet.streams import Ended, Stream
from controls.recorder.internet.web import Body, Line, Web, host_of

__all__ = ["serve"]

_WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3
_PIECE = 1024
_MOST_HEAD = 256 * 1024
_WITHOUT_BODY = (204, 304)


async def serve(stream: Stream, line: Line, web: Web) -> Endpoint | None:
    """Answer requests until the client is done.

    Args:
        stream: what the client sends; its bytes are in the journal already.
        line: where it came in.
        web: answers.

    Returns:
        What the client wants a tunnel to, with whatever follows left in the stream; None at the end.

    Raises:
        Ended: the stream broke.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD)
    try:
        while True:
            got = await _request(connection, stream)
            if got is None:
                return None
            head, body = got
            if head.method == b"CONNECT":
                await _send(
                    connection, stream, h11.Response(status_code=200, headers=[], reason=b"Connection established")
                )
                stream.unread(connection.trailing_data[0])
                return _target(head.target)
            if await _upgraded(connection, stream, head):
                return None
            request = _as_request(head, bytes(body.kept), line)
            await _reply(connection, stream, await web.respond(request, line, body.size), head.method == b"HEAD")
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return None
            connection.start_next_cycle()
    except h11.RemoteProtocolError as error:
        if connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            said = Reply(error.error_status_hint, (("content-type", "text/plain"), ("connection", "close")), b"")
            await _reply(connection, stream, said, head=False)
        raise Ended("error", str(error)) from error


async def _event(connection: h11.Connection, stream: Stream) -> h11.Event | None:
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Event):
            return event
        if event is h11.PAUSED:
            return None
        if connection.they_are_waiting_for_100_continue:
            await _send(connection, stream, h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
        connection.receive_data(await stream.read())


async def _request(connection: h11.Connection, stream: Stream) -> tuple[h11.Request, Body] | None:
    """Return the next request and its body, None at the end of the connection."""
    head = await _event(connection, stream)
    if not isinstance(head, h11.Request):
        return None
    body = Body()
    while True:
        event = await _event(connection, stream)
        if isinstance(event, h11.Data):
            body.add(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            return head, body
        else:
            return None


def _as_request(head: h11.Request, body: bytes, line: Line) -> Request:
    path = head.target.decode("latin-1")
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
    host = next((value for name, value in headers if name == "host"), "")
    scheme = line.scheme
    # GET http://api.example.com/v1 HTTP/1.1, as proxies are asked
    if "://" in path.partition("?")[0]:
        scheme, _, rest = path.partition("://")
        host, slash, behind = rest.partition("/")
        path = slash + behind or "/"
    return Request("http/1.1", scheme, head.method.decode("latin-1"), host, path, headers, body)


def _target(written: bytes) -> Endpoint:
    """Return where ``CONNECT host:port`` leads."""
    text = written.decode("latin-1")
    try:
        return host_of(text), urlsplit("//" + text).port or 443
    except ValueError:
        return text, 443


async def _send(connection: h11.Connection, stream: Stream, event: h11.Event) -> None:
    data = connection.send(event)
    if data:
        await stream.write(data)


async def _upgraded(connection: h11.Connection, stream: Stream, head: h11.Request) -> bool:
    """Become a WebSocket where that is asked for (RFC 6455 section 4.2.2), and swallow what it says."""
    headers = dict(head.headers)
    if headers.get(b"upgrade", b"").lower() != b"websocket" or b"sec-websocket-key" not in headers:
        return False
    accept = base64.b64encode(hashlib.sha1(headers[b"sec-websocket-key"] + _WEBSOCKET).digest())
    said = [(b"upgrade", b"websocket"), (b"connection", b"Upgrade"), (b"sec-websocket-accept", accept)]
    await _send(
        connection,
        stream,
        h11.InformationalResponse(status_code=101, headers=said, reason=b"Switching Protocols"),
    )
    while await stream.read():
        pass
    return True


async def _reply(connection: h11.Connection, stream: Stream, reply: Reply, head: bool) -> None:
    headers = list(reply.headers)
    empty = reply.status in _WITHOUT_BODY
    if reply.length and not empty:
        headers.append(("content-length", str(len(reply.body))))
    reason = HTTPStatus(reply.status).phrase if reply.status in set(HTTPStatus) else ""
    await _send(connection, stream, h11.Response(status_code=reply.status, headers=headers, reason=reason.encode()))
    if not head and not empty:
        piece = len(reply.body) if reply.length else _PIECE
        for at in range(0, len(reply.body), max(1, piece)):
            await _send(connection, stream, h11.Data(data=reply.body[at : at + piece]))
    await _send(connection, stream, h11.EndOfMessage())
