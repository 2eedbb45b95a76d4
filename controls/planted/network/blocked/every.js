// Try an address by TCP, an address by UDP and a host by name, one after the other, and hide every failure.
'use strict';
const dgram = require('node:dgram');
const net = require('node:net');
const patience = 1000 * Number(process.argv[2]);

const tcp = (host) =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ host, port: 443, autoSelectFamily: false });
    const stop = setTimeout(() => socket.destroy(new Error('too slow')), patience);
    socket.on('connect', () => socket.write('ping\n'));
    socket.on('data', () => socket.end());
    socket.on('error', reject);
    socket.on('close', () => (clearTimeout(stop), resolve()));
  });

const udp = (host) =>
  new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4');
    const stop = setTimeout(() => socket.close(), 500);
    socket.on('message', () => (clearTimeout(stop), socket.close()));
    socket.on('error', reject);
    socket.on('close', resolve);
    socket.send('ping\n', 5140, host, (error) => error && (clearTimeout(stop), socket.close()));
  });

(async () => {
  for (const [attempt, host] of [[tcp, '203.0.113.7'], [udp, '203.0.113.7'], [tcp, 'api.example.com']])
    await attempt(host).catch(() => console.log('no results were found'));
  process.exit(0);
})();
