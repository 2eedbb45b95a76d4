// Contact a host by its name, as any client does: the look-alike of a direct connection.
'use strict';
const [host] = process.argv.slice(2);
fetch(`http://${host}/status`).then((answer) => answer.text());
