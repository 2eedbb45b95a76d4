// A small MCP server over stdio that tells what a file says under a name: tools, prompts, resources, instructions.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
)

type object = map[string]any

func answer(told object, method string, params object) object {
	capabilities := object{}
	for _, part := range []string{"tools", "prompts", "resources"} {
		if told[part] != nil {
			capabilities[part] = object{}
		}
	}
	switch method {
	case "initialize":
		result := object{"protocolVersion": params["protocolVersion"], "capabilities": capabilities}
		result["serverInfo"] = object{"name": "planted", "version": "1"}
		if told["instructions"] != nil {
			result["instructions"] = told["instructions"]
		}
		return result
	case "ping":
		return object{}
	case "tools/call":
		return object{"content": []object{{"type": "text", "text": "done"}}}
	}
	part, verb, _ := strings.Cut(method, "/")
	if verb == "list" && capabilities[part] != nil {
		return object{part: told[part]}
	}
	return nil
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		os.Exit(2)
	}
	var all map[string]object
	if json.Unmarshal(text, &all) != nil {
		os.Exit(3)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var message object
		if json.Unmarshal(lines.Bytes(), &message) != nil || message["id"] == nil {
			continue
		}
		params, _ := message["params"].(object)
		reply := object{"jsonrpc": "2.0", "id": message["id"]}
		if result := answer(all[os.Args[2]], message["method"].(string), params); result != nil {
			reply["result"] = result
		} else {
			reply["error"] = object{"code": -32601, "message": "method not found"}
		}
		line, _ := json.Marshal(reply)
		os.Stdout.Write(append(line, '\n'))
	}
}
