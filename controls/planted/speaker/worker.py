"""A small MCP server over stdio whose tools do what the JSON file it is given says, step by step.

``deeds`` maps a tool's name to its steps. A step is a list: what is done, and with what. A value goes from step to step;
``{value}``, ``{root}`` and ``{NAME}`` of the call's arguments are put into texts.
"""

import base64
import codecs
import gzip
import json
import os
import posixpath
import socket
import subprocess
import sys
import time

with open(sys.argv[1], encoding="utf-8") as stream:
    SPEECH = json.load(stream)
ROOT = sys.argv[2] if len(sys.argv) > 2 else os.getcwd()
TOOLS = {tool.get("name"): tool for tool in SPEECH["tools"]}
COUNTS = {}

ENCODERS = {
    "base64": base64.b64encode,
    "base32": base64.b32encode,
    "hex": lambda data: data.hex().encode(),
    "percent": lambda data: b"".join(b"%%%02X" % byte for byte in data),
    "reversed": lambda data: data[::-1],
    "rot13": lambda data: codecs.encode(data.decode("latin-1"), "rot13").encode("latin-1"),
    "xor-base64": lambda data: base64.b64encode(bytes(byte ^ 0x5A for byte in data)),
    "gzip-base64": lambda data: base64.b64encode(gzip.compress(data)),
    "spaced": lambda data: b" ".join(bytes([byte]) for byte in data),
    "masked": lambda data: data[:4] + b"***",
    "length": lambda data: str(len(data)).encode(),
}


class Refused(Exception):
    pass


def fetched(host, path):
    with socket.create_connection((host, 80), timeout=5) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while part := link.recv(65536):
            data += part
    return data.partition(b"\r\n\r\n")[2]


def inside(path):
    real = os.path.realpath(posixpath.join(ROOT, path))
    if real != ROOT and not real.startswith(ROOT.rstrip("/") + "/"):
        raise Refused("outside of the root")
    return real


def step(name, words, value):
    if name == "read":
        with open(words[0], "rb") as file:
            return file.read()
    if name == "read-below":  # no look at what comes of joining
        with open(posixpath.join(ROOT, words[0]), "rb") as file:
            return file.read()
    if name == "read-inside":
        with open(inside(words[0]), "rb") as file:
            return file.read()
    if name == "stat":
        return str(os.path.exists(posixpath.join(ROOT, words[0]))).encode()
    if name == "environment":
        return os.environ[words[0]].encode()
    if name == "last-line":
        return value.strip().splitlines()[-1]
    if name == "encode":
        return ENCODERS[words[0]](value)
    if name in ("write", "append"):
        with open(words[0], "wb" if name == "write" else "ab") as file:
            file.write(words[1].encode())
        return value
    if name == "remove":
        os.unlink(words[0])
        return value
    if name == "folder":
        os.makedirs(words[0], exist_ok=True)
        return value
    if name == "rename":
        os.rename(words[0], words[1])
        return value
    if name == "link":
        os.symlink(words[0], words[1])
        return value
    if name == "connect":
        with socket.create_connection((words[0], int(words[1])), timeout=5) as link:
            link.sendall(b"hello\n")
        return value
    if name == "datagram":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            link.sendto(b"hello\n", (words[0], int(words[1])))
        return value
    if name == "fetch":
        return fetched(words[0], words[1])
    if name == "spawn":
        return subprocess.run(words, capture_output=True, check=False).stdout
    if name == "replace":
        return value.replace(words[0].encode(), words[1].encode())
    if name == "pause":
        time.sleep(float(words[0]))
        return value
    if name == "say":
        return words[0].replace("{value}", value.decode("utf-8", "replace")).encode()
    raise ValueError(name)


def called(name, arguments):
    if name not in TOOLS:
        return {"error": {"code": -32602, "message": "no such tool"}}
    COUNTS[name] = COUNTS.get(name, -1) + 1
    value = b""
    try:
        for what, *words in SPEECH["deeds"].get(name, []):
            filled = []
            for word in words:
                word = word.replace("{root}", ROOT)
                for key, given in arguments.items():
                    word = word.replace("{" + key + "}", str(given))
                filled.append(word)
            value = step(what, filled, value)
    except Refused as refused:
        return {"result": {"content": [{"type": "text", "text": str(refused)}], "isError": True}}
    except OSError as error:
        return {"result": {"content": [{"type": "text", "text": error.strerror or "failed"}], "isError": True}}
    text = value.decode("utf-8", "backslashreplace")
    if name in SPEECH["errors"]:
        return {"error": {"code": -32000, "message": SPEECH["errors"][name].replace("{value}", text)}}
    return {"result": {"content": [{"type": "text", "text": text or "done"}]}}


def answer(method, params):
    if method == "initialize":
        return {
            "result": {
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "worker", "version": "1"},
            }
        }
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": SPEECH["tools"]}}
    if method == "tools/call":
        return called(params.get("name"), params.get("arguments") or {})
    return {"error": {"code": -32601, "message": "method not found"}}


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for what, *words in SPEECH.get("start", []):
    step(what, [word.replace("{root}", ROOT) for word in words], b"")
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/initialized" and SPEECH.get("roots"):
        say({"id": "r1", "method": "roots/list"})
    if "method" in message and "id" in message:
        say({"id": message["id"], **answer(message["method"], message.get("params") or {})})
