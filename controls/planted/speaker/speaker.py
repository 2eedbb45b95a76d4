"""A small MCP server over stdio that says what the JSON file it is given holds, and does nothing else."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as stream:
    SPEECH = json.load(stream)
TOOLS = {tool.get("name"): tool for tool in SPEECH["tools"]}
COUNTS = {}


def called(name):
    if name in SPEECH["errors"]:
        return {"error": {"code": -32000, "message": SPEECH["errors"][name]}}
    if name not in TOOLS:
        return {"error": {"code": -32602, "message": "no such tool"}}
    COUNTS[name] = COUNTS.get(name, -1) + 1
    texts = SPEECH["results"].get(name) or ["done"]
    text = texts[COUNTS[name] % len(texts)]
    if isinstance(text, dict):
        return {"result": text}
    result = {"content": [{"type": "text", "text": text}]}
    if "outputSchema" in TOOLS[name]:
        result["structuredContent"] = {"count": 1}
    return {"result": result}


def listed():
    again = SPEECH.get("relisted")
    COUNTS[""] = COUNTS.get("", -1) + 1
    return {"tools": again if again and COUNTS[""] else SPEECH["tools"]}


def answer(method, params):
    if method == "initialize":
        result = {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": SPEECH.get("capabilities")
            or {"tools": {"listChanged": True}, "prompts": {}, "resources": {}, "logging": {}},
            "serverInfo": {"name": "speaker", "version": "1"},
        }
        if SPEECH.get("instructions"):
            result["instructions"] = SPEECH["instructions"]
        return {"result": result}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": listed()}
    if method == "tools/call":
        return called(params.get("name"))
    if method == "prompts/list":
        return {"result": {"prompts": SPEECH["prompts"]}}
    if method == "prompts/get":
        text = SPEECH["messages"].get(params.get("name"), "")
        return {"result": {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}}
    if method == "resources/list":
        return {"result": {"resources": SPEECH["resources"]}}
    if method == "resources/templates/list":
        return {"result": {"resourceTemplates": []}}
    if method == "resources/read":
        uri = params.get("uri")
        return {"result": {"contents": [{"uri": uri, "text": SPEECH["contents"].get(uri, "")}]}}
    return {"error": {"code": -32601, "message": "method not found"}}


def say(message):
    # ``odd`` replaces members of the answer to a method, as a server that breaks the protocol would.
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def odd(method, message):
    changed = SPEECH.get("odd", {}).get(method)
    if changed is None:
        return message
    return {key: value for key, value in {**message, **changed}.items() if value != "(left out)"}


for line in SPEECH.get("noise", []):
    print(line, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/initialized":
        for ask in SPEECH["asks"]:
            say(ask)
    if "method" in message and "id" in message:
        method = message["method"]
        say(odd(method, {"id": message["id"], **answer(method, message.get("params") or {})}))
