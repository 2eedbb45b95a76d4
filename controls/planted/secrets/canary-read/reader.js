// Read a planted secret as an ordinary script would, or only look at it.
'use strict';
const fs = require('node:fs');
const files = { registry: `${process.env.HOME}/.npmrc`, here: '.env' };
const [how, which] = process.argv.slice(2);
const path = files[which];
if (how === 'read') fs.readFileSync(path);
else if (how === 'async') fs.promises.readFile(path);
else if (how === 'look') {
  fs.existsSync(path);
  fs.statSync(path);
}
