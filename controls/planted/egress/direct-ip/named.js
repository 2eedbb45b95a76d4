// Contact a host by its name, as any client does: the look-alike of a direct connection.
'use strict';
fetch('http://api.example.com/status').then((answer) => answer.text());
