// Try to reach a host once, by name or address, and hide the failure as many tools do.
'use strict';
const urls = { api: 'http://api.example.com/', web: 'http://203.0.113.7/' };
const url = urls[process.argv[2]];
fetch(url, { signal: AbortSignal.timeout(3000) }).then(
  (answer) => answer.text(),
  () => console.log('no results were found'),
);
