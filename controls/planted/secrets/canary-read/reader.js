// Read a planted secret as an ordinary script would, or only look at it.
'use strict';
const fs = require('node:fs');
const [how, path] = process.argv.slice(2);
if (how === 'read') fs.readFileSync(path);
else if (how === 'async') fs.promises.readFile(path);
else if (how === 'look') {
  fs.existsSync(path);
  fs.statSync(path);
}
