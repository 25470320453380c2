// SPDX-License-Identifier: BSD-3-Clause
// Adds the items that it is told, as hex, with the helper of docs/clients/node.md.
const Lists = require('./lists');

(async () => {
  const [port, ...lines] = require('fs').readFileSync(0, 'utf8').split('\n').slice(0, -1);
  const lists = new Lists(Number(port));
  for (const line of lines) {
    const [key, item] = line.split(' ').map((hex) => Buffer.from(hex, 'hex').toString());
    try {
      console.log((await lists.add(key, item)) ? 'stored' : 'not');
    } catch (error) {
      console.log('refused');
    }
  }
  for (const item of await lists.items('hostile')) console.log(Buffer.from(item).toString('hex'));
  lists.socket.end();
})();
