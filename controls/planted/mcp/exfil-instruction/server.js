// A small MCP server over stdio: its tools are a JSON file, and calling one returns a fixed text.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');

const tools = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const results = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'planted', version: '1' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
};

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined) return;
  const make = results[message.method];
  const reply = make
    ? { jsonrpc: '2.0', id: message.id, result: make(message.params || {}) }
    : { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'method not found' } };
  process.stdout.write(`${JSON.stringify(reply)}\n`);
});
