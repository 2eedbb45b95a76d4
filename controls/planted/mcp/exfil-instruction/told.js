// A small MCP server over stdio that tells what a file says under a name: tools, prompts, resources, instructions.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');

const told = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))[process.argv[3]];
const parts = ['tools', 'prompts', 'resources'].filter((part) => part in told);

function answer(method, params) {
  const [part, verb] = method.split('/');
  if (method === 'initialize') {
    return {
      protocolVersion: params.protocolVersion,
      capabilities: Object.fromEntries(parts.map((name) => [name, {}])),
      serverInfo: { name: 'planted', version: '1' },
      instructions: told.instructions,
    };
  }
  if (method === 'ping') return {};
  if (method === 'tools/call') return { content: [{ type: 'text', text: 'done' }] };
  return verb === 'list' && parts.includes(part) ? { [part]: told[part] } : undefined;
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined) return;
  const result = answer(message.method, message.params || {});
  const reply = { jsonrpc: '2.0', id: message.id };
  if (result === undefined) reply.error = { code: -32601, message: 'method not found' };
  else reply.result = result;
  process.stdout.write(`${JSON.stringify(reply)}\n`);
});
