// Send a few bytes to an address that no lookup ever named.
'use strict';
const net = require('node:net');
const dgram = require('node:dgram');

const [how, address, port] = process.argv.slice(2);
const report = 'report: 3 files, 1 host\n';

if (how === 'tcp') {
  const socket = net.connect(Number(port), address, () => socket.write(report));
  socket.on('data', () => socket.end());
  socket.setTimeout(5000, () => socket.destroy());
} else if (how === 'udp') {
  const socket = dgram.createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', () => socket.close());
  socket.send(report, Number(port), address);
} else {
  throw new Error(`unknown way ${how}`);
}
