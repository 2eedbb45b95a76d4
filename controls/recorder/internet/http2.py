"""HTTP/2 sinks (RFC 9113), by the ``h2`` package: with ALPN inside of TLS, or with prior knowledge without it."""

from __future__ import annotations

from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError

from controls.recorder.internet.answers import Reply, Request
from controls.recorder.internet.streams import Ended, Stream
from controls.recorder.internet.web import Body, Line, Web

__all__ = ["serve"]


@dataclass(slots=True)
class _Exchange:
    """One stream of a connection: the request as it comes, then what is left of the answer."""

    headers: list[tuple[str, str]]
    body: Body = field(default_factory=Body)
    left: bytes = b""
    answered: bool = False


async def serve(stream: Stream, line: Line, web: Web) -> str:
    """Answer requests until the client is done.

    Args:
        stream: what the client sends; its bytes are in the journal already.
        line: where it came in.
        web: answers.

    Returns:
        Who ended it.

    Raises:
        Ended: the stream broke.
    """
    connection = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    connection.initiate_connection()
    await stream.write(connection.data_to_send())
    exchanges: dict[int, _Exchange] = {}
    while data := await stream.read():
        try:
            events = connection.receive_data(data)
            for event in events:
                if isinstance(event, ConnectionTerminated):
                    return "client"
                await _handle(connection, event, exchanges, line, web)
            _send_bodies(connection, exchanges)
        except ProtocolError as error:
            await stream.write(connection.data_to_send())
            raise Ended("error", str(error)) from error
        await stream.write(connection.data_to_send())
    return "client"


async def _handle(
    connection: H2Connection, event: object, exchanges: dict[int, _Exchange], line: Line, web: Web
) -> None:
    if isinstance(event, RequestReceived):
        exchanges[event.stream_id] = _Exchange([(_text(name), _text(value)) for name, value in event.headers])
    elif isinstance(event, DataReceived):
        exchanges[event.stream_id].body.add(event.data)
        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    elif isinstance(event, StreamReset):
        exchanges.pop(event.stream_id, None)
    elif isinstance(event, StreamEnded):
        exchange = exchanges[event.stream_id]
        request = _as_request(exchange, line)
        reply = await web.respond(request, line, exchange.body.size)
        exchange.left, exchange.answered = _begin(connection, event.stream_id, reply, request.method), True


def _begin(connection: H2Connection, number: int, reply: Reply, method: str) -> bytes:
    """Send the head of an answer; return the body that is still to be sent."""
    headers = [(":status", str(reply.status)), *reply.headers]
    if reply.length:
        headers.append(("content-length", str(len(reply.body))))
    body = b"" if method == "HEAD" or reply.status in (204, 304) else reply.body
    connection.send_headers(number, headers, end_stream=not body)
    return body


def _send_bodies(connection: H2Connection, exchanges: dict[int, _Exchange]) -> None:
    """Send as much of the answers as the client has room for."""
    for number, exchange in list(exchanges.items()):
        if not exchange.answered:
            continue
        while exchange.left:
            room = min(connection.local_flow_control_window(number), connection.max_outbound_frame_size)
            if room <= 0:
                break
            part, exchange.left = exchange.left[:room], exchange.left[room:]
            connection.send_data(number, part, end_stream=not exchange.left)
        if not exchange.left:
            del exchanges[number]


def _as_request(exchange: _Exchange, line: Line) -> Request:
    fields = dict(exchange.headers)
    host = fields.get(":authority") or fields.get("host", "")
    headers = tuple(one for one in exchange.headers if not one[0].startswith(":"))
    return Request(
        "h2",
        fields.get(":scheme", line.scheme),
        fields.get(":method", ""),
        host,
        fields.get(":path", "/"),
        headers,
        bytes(exchange.body.kept),
    )


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
