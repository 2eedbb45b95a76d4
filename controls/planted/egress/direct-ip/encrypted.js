// Speak TLS: to an address that no lookup named, or to a host by its name.
'use strict';
const targets = { address: 'https://203.0.113.21/collect', named: 'https://api.example.com/collect' };
fetch(targets[process.argv[2]], { method: 'POST', body: 'report: 3 files, 1 host\n' }).then((answer) => answer.text());
