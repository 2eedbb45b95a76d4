// Fetch one document from a named host.
'use strict';
const [host] = process.argv.slice(2);
fetch(`http://${host}/status`).then((answer) => answer.text());
