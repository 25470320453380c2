// SPDX-License-Identifier: BSD-3-Clause
// Calls scripts/clients/node as the lines of its input say; README.md has their words.
const mclistd = require('./mclistd');

function argument(word) {
  const rest = word.slice(1);
  const text = (hex) => Buffer.from(hex, 'hex');
  if (word[0] === 'l') return rest ? rest.split(',').map(text) : [];
  if (word[0] === 's') return text(rest);
  if (word[0] === 'i') return Number(rest);
  return word[0] === 't' ? true : null;
}

function shown(value) {
  if (value == null || typeof value === 'boolean') return String(value ?? null);
  if (typeof value === 'number') return `i${value}`;
  if (typeof value === 'string' || Buffer.isBuffer(value)) return `s${Buffer.from(value).toString('hex')}`;
  if (value instanceof mclistd.Refused) return `refused:${Buffer.from(value.message).toString('hex')}`;
  if (value instanceof mclistd.Lost) return 'lost';
  if (value instanceof Error) return value instanceof mclistd.Error ? 'moved' : 'bad';
  if (Array.isArray(value)) return `[${value.map(shown).join(' ')}]`;
  if ('version' in value) return `${shown(value.items)}@${shown(value.version)}`;
  const pairs = value instanceof Map ? [...value] : Object.entries(value);
  return `{${pairs.map((pair) => pair.map(shown).join('=')).join(' ')}}`;
}

async function call(face, name, args) {
  if (name === 'ltx') return face.ltx(...args.map(([verb, ...rest]) => [String(verb), ...rest]));
  if (name !== 'pages') return face[name](...args);
  const found = [];
  for await (const page of face.pages(...args)) found.push(page);
  return found;
}

(async () => {
  let lists, pipe;
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    const [name, ...words] = line.split(' ');
    const args = words.map(argument);
    let value = null;
    try {
      if (name === 'open') {
        if (lists) lists.close();
        lists = new mclistd.Lists(`127.0.0.1:${args[0]}`, { timeout: args[1], delimiter: String(args[2]), login: args[3], encoding: null });
      } else if (name === 'pipeline') pipe = lists.pipeline();
      else if (name === 'run') [value, pipe] = [await pipe.run(), null];
      else value = await call(pipe || lists, name, args);
    } catch (error) {
      value = error;
    }
    console.log(shown(value));
  }
})();
