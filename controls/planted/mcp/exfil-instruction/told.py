"""A small MCP server over stdio that tells what a file says under a name: tools, prompts, resources, instructions."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as stream:
    TOLD = json.load(stream)[sys.argv[2]]
CAPABILITIES = {part: {} for part in ("tools", "prompts", "resources") if part in TOLD}


def answer(method, params):
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES}
        result["serverInfo"] = {"name": "planted", "version": "1"}
        if "instructions" in TOLD:
            result["instructions"] = TOLD["instructions"]
        return result
    if method == "ping":
        return {}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "done"}]}
    part, _, verb = method.partition("/")
    if verb == "list" and part in TOLD:
        return {part: TOLD[part]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "method not found"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
