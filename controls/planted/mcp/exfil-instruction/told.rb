# A small MCP server over stdio that tells what a file says under a name: tools, prompts, resources, instructions.
require 'json'

TOLD = JSON.parse(File.read(ARGV[0], encoding: 'UTF-8'))[ARGV[1]]
PARTS = %w[tools prompts resources].select { |part| TOLD.key?(part) }

def answer(method, params)
  part, verb = method.split('/')
  case method
  when 'initialize'
    result = { protocolVersion: params['protocolVersion'], capabilities: PARTS.to_h { |name| [name, {}] },
               serverInfo: { name: 'planted', version: '1' } }
    result[:instructions] = TOLD['instructions'] if TOLD.key?('instructions')
    result
  when 'ping' then {}
  when 'tools/call' then { content: [{ type: 'text', text: 'done' }] }
  else verb == 'list' && PARTS.include?(part) ? { part => TOLD[part] } : nil
  end
end

$stdout.sync = true
$stdin.each_line do |line|
  message = JSON.parse(line)
  next unless message.key?('id')

  result = answer(message['method'], message['params'] || {})
  reply = { jsonrpc: '2.0', id: message['id'] }
  result ? reply[:result] = result : reply[:error] = { code: -32_601, message: 'method not found' }
  puts JSON.generate(reply)
end
