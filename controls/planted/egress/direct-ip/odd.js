// Reach an address without a name by a library or a child, or only seem to.
'use strict';
const childProcess = require('node:child_process');
const dgram = require('node:dgram');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');

const ways = {
  // The host of the URL is an address.
  url: () => fetch('http://203.0.113.25:8080/in').then((answer) => answer.text()),
  // A child does it.
  child: () => childProcess.execFileSync(process.execPath, [__filename, 'url']),
  // A QUIC version 1 Initial packet, as it stands in the file named.
  quic: () => {
    const socket = dgram.createSocket('udp4');
    socket.on('message', () => socket.close());
    socket.send(fs.readFileSync(process.argv[3]), 443, '203.0.113.9');
  },
  // The look-alikes. Server and client on ::1.
  loopback: () => {
    const server = http.createServer((request, answer) => answer.end('hello\n'));
    server.listen(0, '::1', () =>
      http.get({ host: '::1', port: server.address().port, agent: false }, (answer) => {
        answer.resume().on('end', () => server.close());
      }),
    );
  },
  // A unix socket.
  unix: () => {
    const server = net.createServer((socket) => socket.end('hello\n'));
    server.listen('/tmp/box', () => net.connect('/tmp/box').on('end', () => server.close()).resume());
  },
  // Addresses that are read and compared, and never dialled.
  parse: () => {
    const list = new net.BlockList();
    list.addSubnet('203.0.113.0', 24);
    console.log(new URL('http://203.0.113.25:8080/in').host, list.check('203.0.113.25'), net.isIP('1.1.1.1'));
  },
  // A connected datagram socket knows the own address; no packet is sent.
  'own-address': () => {
    const socket = dgram.createSocket('udp4');
    socket.connect(80, '8.8.8.8', () => {
      console.log(socket.address().address);
      socket.close();
    });
  },
  // A search for devices on the link (SSDP).
  search: () => {
    const socket = dgram.createSocket('udp4');
    const text = 'M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: "ssdp:discover"\r\nMX: 1\r\nST: ssdp:all\r\n\r\n';
    socket.bind(0, () => {
      socket.setMulticastTTL(1);
      socket.send(text, 1900, '239.255.255.250', () => socket.close());
    });
  },
};
ways[process.argv[2]]();
