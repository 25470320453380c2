// SPDX-License-Identifier: BSD-3-Clause
// Node's clients as agents (README.md): memcached and memjs.
const readline = require('readline');
const [name, setting, ...servers] = process.argv.slice(2);

function startMemcached() {
  const Memcached = require('memcached');
  const options = { retries: 1, timeout: 20000 };
  if (setting === 'patient') Object.assign(options, { retry: 1, failures: 1e9 });
  const client = new Memcached(servers, options);
  const versions = {};
  const call = (method, ...args) =>
    new Promise((resolve, reject) =>
      client[method](...args, (error, data) => (error ? reject(error) : resolve(data))));
  const setters = ['set', 'add', 'replace'];
  return async (verb, key, text) => {
    if (verb === 'get') return call('get', key);
    if (verb === 'gets') {
      const found = await call('gets', key);
      versions[key] = found && found.cas;
      return found && found[key];
    }
    if (verb === 'cas') return call('cas', key, text, versions[key], 0);
    if (verb === 'delete') return call('del', key);
    if (verb === 'touch') return call('touch', key, Number(text));
    return setters.includes(verb) ? call(verb, key, text, 0) : call(verb, key, text);
  };
}

function startMemjs() {
  const client = require('memjs').Client.create(servers.join(','), {
    retries: 1, timeout: 20, logger: { log() {} },
  });
  return async (verb, key, text) => {
    if (verb === 'get') return (await client.get(key)).value;
    if (verb === 'touch') return client.touch(key, Number(text));
    if (verb === 'gets' || verb === 'cas') return undefined;
    const setters = ['set', 'add', 'replace'];
    return setters.includes(verb) ? client[verb](key, text, {}) : client[verb](key, text);
  };
}

const run = name === 'memcached' ? startMemcached() : startMemjs();

function shown(verb, result) {
  if (verb !== 'get' && verb !== 'gets') return result ? 'yes' : 'no';
  return result === undefined || result === null ? 'miss' : `is ${result}`;
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const words = line.replaceAll('<CRLF>', '\r\n').split('\t');
    let answer;
    try {
      answer = shown(words[0], await run(...words));
    } catch (error) {
      answer = error.notStored ? 'no' : `error ${String(error).replace(/\n/g, ' ')}`;
    }
    process.stdout.write(answer + '\n');
  }
  process.exit(0);
})();
