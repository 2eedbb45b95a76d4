// Try to reach a host once, by name or address, and hide the failure as many tools do.
'use strict';
const [url] = process.argv.slice(2);
fetch(url, { signal: AbortSignal.timeout(3000) }).then(
  (answer) => answer.text(),
  () => console.log('no results were found'),
);
