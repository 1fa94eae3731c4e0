'use strict';
// Configuration values that the pullet agent keeps up to date. See README.md and index.d.ts.

const fs = require('fs');
const os = require('os');
const path = require('path');

const { DecodeError, decode, optional, record } = require('./decode.js');

const prebuilt = path.join(__dirname, 'prebuilds', `${process.platform}-${process.arch}`, 'pullet.node');
const built = path.join(__dirname, 'build', 'Release', 'pullet.node');
const addon = require(process.env.PULLET_NODE_ADDON || (fs.existsSync(built) ? built : prebuilt)); // eslint-disable-line

const POLL_MS = 100; // where the system gives no descriptor to poll
const MAX_TIMER_MS = 2 ** 31 - 1;

const WITHDRAWN = -os.constants.errno.EIDRM;

const errnoNames = new Map(Object.entries(os.constants.errno).reverse().map(([k, v]) => [v, k]));

function systemError(rc, path, why = addon.strerror(rc)) {
  const code = errnoNames.get(-rc) || `E${-rc}`;
  const error = new Error(`${code}: ${why}, '${path}'`);
  return Object.assign(error, { code, errno: rc, path });
}

function typeError(message) {
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' });
}

function abortError(signal) {
  if (signal.reason !== undefined) return signal.reason;
  const error = Object.assign(new Error('This operation was aborted'), { code: 'ABORT_ERR' });
  error.name = 'AbortError';
  return error;
}

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// The key of what holds this one (undefined = the root), and the last segment, unescaped.
function split(key) {
  let at = key.lastIndexOf('.');
  if (!key.includes('\\')) return at < 0 ? [undefined, key] : [key.slice(0, at), key.slice(at + 1)];
  for (; at >= 0; at = at ? key.lastIndexOf('.', at - 1) : -1) {
    let begin = at;
    while (begin && key[begin - 1] === '\\') begin--;
    if ((at - begin) % 2 === 0) break; // not an escaped dot
  }
  const segment = key.slice(at + 1).replace(/\\([.\\])/g, '$1');
  return [at < 0 ? undefined : key.slice(0, at), segment];
}

function isContainer(value) {
  return typeof value === 'object' && value !== null;
}

function put(holder, segment, item) {
  if (Array.isArray(holder)) {
    if (/^(0|[1-9]\d*)$/.test(segment) && Number(segment) < holder.length) holder[segment] = item;
  } else if (segment === '__proto__') {
    Object.defineProperty(holder, segment,
      { value: item, enumerable: true, configurable: true, writable: true });
  } else if (holder) {
    holder[segment] = item;
  }
}

// Puts each of [key, value, ...] into its list or map, as far as holders or the list itself has it.
function build(flat, holders) {
  for (let i = 0; i < flat.length; i += 2) {
    const key = flat[i];
    const item = flat[i + 1];
    if (isContainer(item)) {
      if (Array.isArray(item)) item.fill(null);
      holders.set(key, item);
    }
    const [parent, segment] = split(key);
    put(holders.get(parent), segment, item);
  }
}

// The value of a key, lists and maps built; undefined when there is none.
function read(handle, key) {
  const value = addon.get(handle, key);
  if (isContainer(value)) {
    if (Array.isArray(value)) value.fill(null);
    build(addon.each(handle, `${key}.`, true), new Map([[key, value]]));
  }
  return value;
}

const UNKNOWN = Symbol('not looked up yet');

// A key of one config. What a getter found is kept until the config moves or is closed, but for
// lists and maps, which a program may change.
class Key {
  #handle;
  #state;
  #name;
  #values = new Array(7);
  #moves = -1; // of the config, when values was empty

  constructor(handle, state, name) {
    this.#handle = handle;
    this.#state = state;
    this.#name = name;
  }

  get name() {
    return this.#name;
  }

  // What look() says of the key, kept in that place of values.
  #find(place, look, fallback) {
    if (this.#moves !== this.#state.moves) {
      this.#values.fill(UNKNOWN);
      this.#moves = this.#state.moves;
    }
    let value = this.#values[place];
    if (value === UNKNOWN) {
      value = look(this.#handle, this.#name);
      if (!isContainer(value)) this.#values[place] = value;
    }
    return value === undefined ? fallback : value;
  }

  get(fallback) {
    return this.#find(0, read, fallback);
  }

  getString(fallback) {
    return this.#find(1, addon.getString, fallback);
  }

  getInt(fallback) {
    return this.#find(2, addon.getInt, fallback);
  }

  getNumber(fallback) {
    return this.#find(3, addon.getNumber, fallback);
  }

  getBoolean(fallback) {
    return this.#find(4, addon.getBoolean, fallback);
  }

  getDuration(fallback) {
    return this.#find(5, addon.getDuration, fallback);
  }

  getSize(fallback) {
    return this.#find(6, addon.getSize, fallback);
  }
}

class Config {
  #handle = addon.handle();
  #path;
  #closed = false;
  #state = { moves: 0 }; // the closing is one, too
  #withdrawn = false; // and a refresh has said so
  #polled; // promise: resolved when there may be something
  #wakers = new Set(); // of those who wait

  constructor(nameOrPath, options) {
    if (typeof nameOrPath !== 'string') throw typeError('nameOrPath is not a string');
    if (options !== undefined && !isContainer(options)) throw typeError('options is not an object');
    this.#path = nameOrPath;
    const rc = addon.open(this.#handle, nameOrPath, Boolean(options && options.waitFirst));
    if (rc < 0) throw systemError(rc, nameOrPath.slice(0, 4096), addon.explain(nameOrPath, rc));
  }

  static open(nameOrPath, options) {
    return new Config(nameOrPath, options);
  }

  get(key, fallback) {
    const value = read(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  getString(key, fallback) {
    const value = addon.getString(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  getInt(key, fallback) {
    const value = addon.getInt(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  getNumber(key, fallback) {
    const value = addon.getNumber(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  getBoolean(key, fallback) {
    const value = addon.getBoolean(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  getDuration(key, fallback) {
    const value = addon.getDuration(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  getSize(key, fallback) {
    const value = addon.getSize(this.#handle, key);
    return value === undefined ? fallback : value;
  }

  key(key) {
    addon.has(this.#handle, key); // a string, and not closed?
    return new Key(this.#handle, this.#state, key);
  }

  has(key) {
    return addon.has(this.#handle, key);
  }

  keys(prefix = '') {
    return addon.each(this.#handle, prefix, false);
  }

  entries(prefix = '') { // reads at once: all of one version
    const flat = addon.each(this.#handle, prefix, true);
    build(flat, new Map());
    return (function* pairs() {
      for (let i = 0; i < flat.length; i += 2) yield [flat[i], flat[i + 1]];
    })();
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  toObject() {
    const root = {};
    build(addon.each(this.#handle, '', true), new Map([[undefined, root]]));
    return root;
  }

  #move() { // 1, 0 or -errno
    const rc = addon.refresh(this.#handle);
    this.#withdrawn = rc === WITHDRAWN;
    if (rc > 0) this.#state.moves++;
    return rc;
  }

  refresh() {
    const rc = this.#move();
    if (rc < 0) throw systemError(rc, this.#path);
    return rc > 0;
  }

  async wait(options = {}) {
    if (!isContainer(options)) throw typeError('options is not an object');
    const { timeout = Infinity, signal } = options;
    if (typeof timeout !== 'number' || Number.isNaN(timeout)) {
      throw typeError('timeout is not a number');
    }
    if (signal !== undefined && !(isContainer(signal) && typeof signal.aborted === 'boolean' &&
        typeof signal.addEventListener === 'function')) {
      throw typeError('signal is not an AbortSignal');
    }
    const first = this.#state.moves;
    let known = this.#withdrawn; // it waits for the config to come back
    const end = performance.now() + timeout;
    let wake;
    const onAbort = () => wake && wake();
    if (signal) signal.addEventListener('abort', onAbort);
    try {
      for (;;) {
        if (signal && signal.aborted) throw abortError(signal);
        const rc = this.#move();
        if (rc < 0 && !(known && rc === WITHDRAWN)) throw systemError(rc, this.#path);
        if (this.#state.moves !== first) return true;
        known = rc === WITHDRAWN;
        const left = Math.ceil(end - performance.now());
        if (left <= 0) return false;
        let timer;
        await new Promise((resolve, reject) => { // eslint-disable-line no-loop-func
          wake = resolve;
          this.#wakers.add(wake);
          if (timeout !== Infinity) timer = setTimeout(resolve, Math.min(left, MAX_TIMER_MS));
          this.#poll().then(resolve, reject);
        }).finally(() => { // eslint-disable-line no-loop-func
          clearTimeout(timer);
          this.#wakers.delete(wake);
          if (!this.#wakers.size && !this.#closed) this.#unpoll();
        });
      }
    } finally {
      if (signal) signal.removeEventListener('abort', onAbort);
    }
  }

  // Resolved when something may have happened: libuv polls the descriptor, for all who wait.
  #poll() {
    if (this.#polled) return this.#polled;
    const polled = new Promise((resolve) => {
      const rc = addon.poll(this.#handle, () => {
        if (this.#polled === polled) this.#polled = undefined;
        resolve();
      });
      if (rc < 0) resolve(sleep(POLL_MS));
    });
    this.#polled = polled;
    return polled;
  }

  #unpoll() {
    addon.unpoll(this.#handle);
    this.#polled = undefined;
  }

  async* watch(options = {}) {
    if (!isContainer(options)) throw typeError('options is not an object');
    while (!this.#closed) {
      try {
        await this.wait({ signal: options.signal });
      } catch (error) {
        if (this.#closed) return;
        throw error;
      }
      yield this;
    }
  }

  decode(shape, prefix, { strict = false } = {}) {
    const whyEmpty = () => addon.explain(this.#path, this.withdrawn ? WITHDRAWN : -os.constants.errno.ENOENT);
    return decode(this, shape, prefix, strict, this.#path, whyEmpty);
  }

  get generation() {
    return addon.generation(this.#handle);
  }

  get version() {
    return addon.version(this.#handle);
  }

  get age() {
    const ms = addon.age(this.#handle);
    return ms < 0 ? null : ms;
  }

  get stale() {
    return addon.stale(this.#handle);
  }

  get withdrawn() {
    return addon.withdrawn(this.#handle);
  }

  close() {
    addon.close(this.#handle);
    this.#closed = true;
    this.#state.moves++;
    for (const wake of this.#wakers) wake();
  }
}

if (Symbol.dispose) {
  Object.defineProperty(Config.prototype, Symbol.dispose,
    { value: Config.prototype.close, configurable: true, writable: true });
}

module.exports = { Config, DecodeError, Key, optional, record };
Object.defineProperty(module.exports, Symbol.for('pullet.testing'), { value: { Config, addon } });
