// A small MCP server over stdio that says what the JSON file it is given holds, and does nothing else.
"use strict";
const fs = require("node:fs");
const readline = require("node:readline");

const speech = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const tools = new Map(speech.tools.map((tool) => [tool.name, tool]));
const counts = new Map();

function next(name) {
  counts.set(name, (counts.has(name) ? counts.get(name) : -1) + 1);
  return counts.get(name);
}

function called(name) {
  if (name in speech.errors) return { error: { code: -32000, message: speech.errors[name] } };
  if (!tools.has(name)) return { error: { code: -32602, message: "no such tool" } };
  const texts = speech.results[name] || ["done"];
  const text = texts[next(name) % texts.length];
  if (typeof text === "object") return { result: text };
  const result = { content: [{ type: "text", text }] };
  if ("outputSchema" in tools.get(name)) result.structuredContent = { count: 1 };
  return { result };
}

function answer(method, params) {
  switch (method) {
    case "initialize": {
      const result = {
        protocolVersion: params.protocolVersion || "2025-06-18",
        capabilities: speech.capabilities || { tools: { listChanged: true }, prompts: {}, resources: {}, logging: {} },
        serverInfo: { name: "speaker", version: "1" },
      };
      if (speech.instructions) result.instructions = speech.instructions;
      return { result };
    }
    case "ping":
      return { result: {} };
    case "tools/list":
      return { result: { tools: speech.relisted && next("") ? speech.relisted : speech.tools } };
    case "tools/call":
      return called(params.name);
    case "prompts/list":
      return { result: { prompts: speech.prompts } };
    case "prompts/get": {
      const text = speech.messages[params.name] || "";
      return { result: { messages: [{ role: "user", content: { type: "text", text } }] } };
    }
    case "resources/list":
      return { result: { resources: speech.resources } };
    case "resources/templates/list":
      return { result: { resourceTemplates: [] } };
    case "resources/read":
      return { result: { contents: [{ uri: params.uri, text: speech.contents[params.uri] || "" }] } };
    default:
      return { error: { code: -32601, message: "method not found" } };
  }
}

const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

(speech.noise || []).forEach((line) => process.stdout.write(line + "\n"));
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === "notifications/initialized") speech.asks.forEach(say);
  if (message.method !== undefined && message.id !== undefined) {
    const said = { id: message.id, ...answer(message.method, message.params || {}), ...((speech.odd || {})[message.method] || {}) };
    for (const key of Object.keys(said)) if (said[key] === "(left out)") delete said[key];
    say(said);
  }
});
