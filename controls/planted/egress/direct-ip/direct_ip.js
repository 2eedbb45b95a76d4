// Send a few bytes to an address that no lookup ever named.
'use strict';
const net = require('node:net');
const dgram = require('node:dgram');

// The addresses are the program's own: nobody who starts it gives them.
const places = {
  one: ['1.1.1.1', 443],
  one6: ['2606:4700:4700::1111', 443],
  far: ['203.0.113.9', 5140],
};
const [how, place] = process.argv.slice(2);
const [address, port] = places[place];
const report = 'report: 3 files, 1 host\n';

if (how === 'tcp') {
  const socket = net.connect(port, address, () => socket.write(report));
  socket.on('data', () => socket.end());
  socket.setTimeout(5000, () => socket.destroy());
} else if (how === 'udp') {
  const socket = dgram.createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', () => socket.close());
  socket.send(report, port, address);
} else {
  throw new Error(`unknown way ${how}`);
}
