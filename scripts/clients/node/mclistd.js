// SPDX-License-Identifier: BSD-3-Clause
'use strict';
const net = require('net');
const tls = require('tls');

const LINE_BYTES_MAX = 65536;
const SAYS = new Map(Object.entries({
  STORED: true, DELETED: true, OK: true, TOUCHED: true,
  NOT_STORED: false, NOT_FOUND: false, EXISTS: false,
}));
const LINES = ['ladd', 'ldel', 'lset', 'lrequire', 'lrefuse']; // of a transaction

class MclistdError extends Error {}

/** The proxy's line of error. The connection goes on. */
class Refused extends MclistdError {}

/** No answer, or none that can be read: the request may have been done. The connection is closed,
 *  and the next request makes a new one. */
class Lost extends MclistdError {}

// --- requests: Buffers that go into one ---

const bytes = (text) => (Buffer.isBuffer(text) ? text : Buffer.from(String(text)));

function isWord(word) {
  return word.length > 0 && word.every((byte) => byte > 0x20 && byte !== 0x7f);
}

function line(verb, ...words) {
  const parts = [Buffer.from(verb)];
  for (const word of words.map(bytes)) {
    if (!isWord(word)) throw new TypeError(`no key, nor an item that can stand beside others: '${word}'`);
    parts.push(Buffer.from(' '), word);
  }
  return Buffer.concat(parts);
}

const request = (...parts) => Buffer.concat(parts.map(bytes));

function data(item) {
  const block = bytes(item);
  return request(`${block.length}\r\n`, block, '\r\n');
}

function int(number) {
  if (!Number.isSafeInteger(number)) throw new TypeError(`${number} is no whole number`);
  return String(number);
}

function some(words) {
  if (!words.length) throw new TypeError('nothing is named');
  return words;
}

/** One item may have any bytes. */
function change(verb, key, items, ...seconds) {
  if (some(items).length > 1) return request(line(verb, key, ...seconds, ...items), '\r\n');
  return request(line(`${verb}b`, key, ...seconds), ' ', data(items[0]));
}

const options = (numbers, isNew) =>
  numbers.filter((number) => number != null).map((number) => ` ${int(number)}`).join('') + (isNew ? ' new' : '');

// --- shapes of answers: of a line, or of the blocks before END ---

const NONE = Symbol('no answer to this');
const absent = (answer) => answer === 'NOT_FOUND' || answer === 'NOT_STORED';
const whole = (answer) => (/^-?\d{1,16}$/.test(answer) ? Number(answer) : NONE);
const done = (answer) => (SAYS.has(answer) ? SAYS.get(answer) : NONE);
const number = (answer) => (absent(answer) ? null : whole(answer));
const token = (answer) => (answer === 'NOT_STORED' ? 0 : answer === 'EXISTS' ? null : whole(answer));
const blocks = (read) => (answer) => (Array.isArray(answer) ? read(answer) : NONE);
const stats = blocks((found) =>
  Object.fromEntries(found.map(({ words }) => [words[1], words.slice(2).join(' ')])));

/**
 * The list verbs of mclistd: each is a method that has its name and takes its words.
 *
 *     const lists = new Lists('127.0.0.1:11220');
 *     await lists.ladd('followers:ann', 'bob', 'carol smith');
 *     await lists.lrevrange('followers:ann', 0, 9);      // ['carol smith', 'bob']
 *
 * A verb that answers with a word gives true, or false for NOT_STORED, NOT_FOUND and EXISTS; others
 * a number or an array of items, null for NOT_FOUND or NOT_STORED in their place. One connection,
 * which the first request makes; calls need not wait for each other.
 */
class Lists {
  /** address: HOST:PORT or the path of a unix socket; timeout: ms of silence; encoding: null for
   *  items as Buffers; login: 'USER PASSWORD'; tls: options of tls.connect(). */
  constructor(address = '127.0.0.1:11220', { timeout = 3000, delimiter = ',', encoding = 'utf8', login, tls } = {}) {
    Object.assign(this, { address, timeout, delimiter, encoding, login, tls, socket: null });
    const text = (block) => (encoding === null ? block : block.toString(encoding));
    const split = (block) => {
      const found = [];
      for (let at = 0, end; block.length && at >= 0; at = end < 0 ? -1 : end + 1) {
        end = block.indexOf(delimiter, at);
        found.push(text(block.subarray(at, end < 0 ? block.length : end)));
      }
      return found;
    };
    const items = blocks((found) =>
      found.flatMap(({ words, block }) => (words[0] === 'ITEM' ? [text(block)] : split(block))));
    this.items = (answer) => (answer === 'NOT_FOUND' ? null : items(answer));
    this.single = blocks((found) => found.map(({ block }) => text(block)));
    this.versioned = blocks(([first]) =>
      (first ? { items: split(first.block), version: whole(first.words[4]) } : null));
    this.each = blocks((found) => new Map(found.map(({ words, block }) => [words[1], split(block)])));
  }

  // --- changes ---

  ladd(key, ...items) { return this.do(done, change('ladd', key, items)); }
  laddt(key, seconds, ...items) { return this.do(done, change('laddt', key, items, int(seconds))); }
  ldel(key, ...items) { return this.do(done, change('ldel', key, items)); }
  lset(key, ...items) { return this.ask(done, 'lset', key, ...items); }
  lcreate(key, ...items) { return this.ask(done, 'lcreate', key, ...items); }
  laddx(key, ...items) { return this.ask(number, 'laddx', key, ...some(items)); }
  ldelx(key, ...items) { return this.ask(number, 'ldelx', key, ...some(items)); }

  /** Items of any bytes. A token goes with an exptime. */
  lput(key, items, exptime = null, token = null, isNew = false) {
    const block = Buffer.concat(items.map((item) => request('ITEM x ', data(item))));
    const tail = options([exptime, token], isNew);
    return this.do(done, request(line('lputb', key), ` ${block.length}${tail}\r\n`, block, '\r\n'));
  }

  lcopy(src, dst, exptime = null, isNew = false) {
    return this.do(number, request(line('lcopy', src, dst), options([exptime], isNew), '\r\n'));
  }

  ltouch(key, exptime) { return this.ask(done, 'ltouch', key, int(exptime)); }
  ldrop(key) { return this.ask(done, 'ldrop', key); }
  lpurge(key) { return this.ask(number, 'lpurge', key); }
  lcompact(key) { return this.ask(done, 'lcompact', key); }
  lconvert(key) { return this.ask(number, 'lconvert', key); }
  lmigrate(key) { return this.ask(done, 'lmigrate', key); }

  /** The token; 0: another client has the lease; null: the list is there. */
  llease(key, seconds) { return this.ask(token, 'llease', key, int(seconds)); }

  // --- reads ---

  lget(key) { return this.ask(this.items, 'lgetb', key); }

  /** { items, version }; null: there are none. */
  lgets(key) { return this.ask(this.versioned, 'lgets', key); }

  /** A Map of one instant; a list that is missing is left out. */
  lgetx(...keys) { return this.ask(this.each, 'lgetx', ...some(keys)); }

  /** Those of the items that are in the list. */
  lhas(key, ...items) {
    if (items.length !== 1) return this.ask(this.items, 'lhas', key, ...some(items));
    return this.do(this.single, request(line('lhasb', key), ' ', data(items[0])));
  }

  llen(key) { return this.ask(number, 'llen', key); }

  /** Seconds, -1 for never. */
  lttl(key, item = null) {
    if (item === null) return this.ask(number, 'lttl', key);
    return this.do(number, request(line('lttlb', key), ' ', data(item)));
  }

  lrange(key, from, to) { return this.ask(this.items, 'lrange', key, int(from), int(to)); }
  lrevrange(key, from, to) { return this.ask(this.items, 'lrevrange', key, int(from), int(to)); }
  lafter(key, item, count) { return this.ask(this.items, 'lafter', key, item, int(count)); }
  lbefore(key, item, count) { return this.ask(this.items, 'lbefore', key, item, int(count)); }
  lrandom(key, count) { return this.ask(this.items, 'lrandomb', key, int(count)); }
  lstat(key) { return this.ask(stats, 'lstat', key); }

  /** The list in pages, from its oldest item or its newest. Each goes on behind the last item of the
   *  one before, or the one before that, if it has left the list meanwhile. */
  async *pages(key, count = 1000, newest = false) {
    let page = await this[newest ? 'lrevrange' : 'lrange'](key, 0, count - 1);
    while (page.length) {
      yield page;
      page = await this.next(newest ? 'lbefore' : 'lafter', key, page, count);
    }
  }

  async next(verb, key, page, count) {
    for (let at = page.length - 1; at >= 0; at--) {
      if (!isWord(bytes(page[at]))) continue;
      const behind = page.slice(at + 1).map((item) => bytes(item).toString('latin1'));
      const found = await this[verb](key, page[at], count + behind.length);
      if (found === null) continue;
      return found.filter((item) => !behind.includes(bytes(item).toString('latin1'))).slice(0, count);
    }
    throw new MclistdError('no item of the last page can say where the next one begins');
  }

  // --- several lists ---

  linter(...keys) { return this.ask(this.items, 'linter', ...some(keys)); }
  lunion(...keys) { return this.ask(this.items, 'lunion', ...some(keys)); }
  ldiff(...keys) { return this.ask(this.items, 'ldiff', ...some(keys)); }
  linterlen(...keys) { return this.ask(number, 'linterlen', ...some(keys)); }
  lunionlen(...keys) { return this.ask(number, 'lunionlen', ...some(keys)); }
  ldifflen(...keys) { return this.ask(number, 'ldifflen', ...some(keys)); }
  linterstore(dst, ...keys) { return this.ask(number, 'linterstore', dst, ...some(keys)); }
  lunionstore(dst, ...keys) { return this.ask(number, 'lunionstore', dst, ...some(keys)); }
  ldiffstore(dst, ...keys) { return this.ask(number, 'ldiffstore', dst, ...some(keys)); }
  lpop(key, count) { return this.ask(this.items, 'lpopb', key, int(count)); }
  lpopto(src, dst, count) { return this.ask(this.items, 'lpoptob', src, dst, int(count)); }
  lmove(src, dst, ...items) { return this.ask(number, 'lmove', src, dst, ...some(items)); }

  /** Each a line: [verb, key, item, ...], the verb ladd, ldel, lset, lrequire or lrefuse. */
  ltx(...changes) {
    const block = Buffer.concat(changes.map(([verb, key, ...items]) => {
      if (!LINES.includes(verb)) throw new TypeError(`'${verb}' is no line of a transaction`);
      return verb === 'lset' ? request(line(verb, key, ...items), '\r\n') : change(verb, key, items);
    }));
    return this.do(done, request(`ltx ${block.length}\r\n`, block, '\r\n'));
  }

  // --- the connection ---

  /** The same verbs, sent together by its run(). */
  pipeline() { return new Pipeline(this); }

  ask(read, verb, ...words) { return this.do(read, request(line(verb, ...words), '\r\n')); }

  do(read, bytes) {
    if (!this.socket) this.connect();
    return new Promise((resolve, reject) => this.send(bytes, { read, resolve, reject }));
  }

  send(bytes, call) {
    this.waiting.push(call);
    this.socket.ref();
    this.socket.write(bytes);
  }

  close() {
    if (this.socket) this.socket.destroy();
  }

  connect() {
    const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(this.address) || [];
    const where = this.address.startsWith('/') ? { path: this.address } : { host, port: Number(port) };
    const socket = this.tls ? tls.connect({ ...where, ...this.tls }) : net.connect(where);
    const waiting = [];
    let known = 'nothing was sent';
    let why = 'the proxy has closed the connection';
    Object.assign(this, { socket, waiting, found: [], chunks: [], total: 0, need: 1 });
    const lose = (text, refused) => {
      why = text;
      this.socket = this.socket === socket ? null : this.socket;
      socket.destroy();
      waiting.splice(0).forEach(({ reject }) => reject(refused || new Lost(`${known}: ${why}`)));
    };
    socket.setNoDelay(true);
    socket.setTimeout(this.timeout, () => waiting.length && lose('no answer in time'));
    socket.on('connect', () => { known = 'no answer, the outcome is unknown'; });
    socket.on('error', (error) => lose(error.message));
    socket.on('close', () => lose(why));
    socket.on('data', (chunk) => {
      if (socket !== this.socket) return;
      try {
        this.take(chunk);
      } catch (error) {
        lose(error.message);
      }
      if (!waiting.length) socket.unref();
    });
    if (this.login === undefined) return;
    const read = (answer) => (answer === 'STORED' ? true : NONE);
    this.send(request('set login 0 0 ', data(this.login)), { read, resolve() {}, reject: (error) => lose(error.message, error) });
  }

  /** Bytes of answers as they come; throws what is none. Only when there are enough of them for the
   *  next step are they laid together. */
  take(chunk) {
    this.chunks.push(chunk);
    this.total += chunk.length;
    if (this.total < this.need) return;
    const input = Buffer.concat(this.chunks);
    let at = 0;
    for (let end; (end = this.step(input, at)) > at;) at = end;
    this.chunks = [input.subarray(at)];
    this.total = input.length - at;
    this.need = Math.max(this.need - at, this.total + 1);
  }

  /** Takes a line, and the data behind it; returns where it ends, or `at`, when it is not whole. */
  step(input, at) {
    const end = input.indexOf('\r\n', at);
    this.need = 0;
    if ((end < 0 ? input.length : end) - at > LINE_BYTES_MAX) throw new Error('a line of the answer is too long');
    if (end < 0) return at;
    const text = input.toString('utf8', at, end);
    const words = text.split(' ');
    if (!this.waiting.length) throw new Error('an answer that nothing has asked for');
    if (/^(CLIENT_|SERVER_)?ERROR$/.test(words[0])) this.answer(new Refused(text));
    else if (words[0] === 'END') this.answer(this.found);
    else if (words[0] === 'STAT') this.found.push({ words });
    else if (words[0] === 'VALUE' || words[0] === 'ITEM') return this.block(input, at, end + 2, words);
    else if (!this.found.length) this.answer(text);
    else throw new Error('a line that is no part of this answer');
    return end + 2;
  }

  block(input, at, from, words) {
    const size = words[words[0] === 'VALUE' ? 3 : 2];
    if (!/^\d{1,10}$/.test(size)) throw new Error('no length of data');
    const to = from + Number(size);
    this.need = to + 2;
    if (input.length < to + 2) return at;
    if (input.toString('latin1', to, to + 2) !== '\r\n') throw new Error('the answer is out of step');
    this.found.push({ words, block: input.subarray(from, to) });
    return to + 2;
  }

  answer(answer) {
    const { read, resolve, reject } = this.waiting[0];
    const value = answer instanceof Refused ? answer : read(answer);
    if (value === NONE) throw new Error('no answer to this');
    this.found = [];
    this.waiting.shift();
    if (value instanceof Refused) reject(value);
    else resolve(value);
  }
}

/** Its verbs give nothing; run() gives the result of each, or the error in its place. */
class Pipeline extends Lists {
  constructor(lists) {
    super(lists.address, lists);
    Object.assign(this, { lists, calls: [] });
  }

  do(read, bytes) { this.calls.push([read, bytes]); }

  run() {
    const calls = this.calls.splice(0);
    return Promise.all(calls.map((call) => this.lists.do(...call).catch((error) => error)));
  }
}

module.exports = { Lists, Error: MclistdError, Refused, Lost };
