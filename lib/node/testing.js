'use strict';
// Configurations for tests of applications: no agent, the library's own getters. See index.d.ts.
// A snapshot of its own in a temporary directory, which close() removes.

const fs = require('fs');
const os = require('os');
const path = require('path');

const { Config, addon } = require('./index.js')[Symbol.for('pullet.testing')];

const FIELDS = { generation: [8, 8], futex: [16, 4], withdrawn: [20, 4], confirmed_ms: [24, 8], stale_ms: [32, 8] };

const escape = (name) => name.replace(/[.\\]/g, '\\$&');

// [key, kind, text, ...] of what is below value.
function flatten(value, key, flat) {
  const one = (at, item) => {
    const [kind, text] = kindOf(item, at);
    if (at.includes('\0') || text.includes('\0')) throw new TypeError(`${at}: a configuration has no NUL`);
    flat.push(at, kind, text);
    if (kind === 'l' || kind === 'm') flatten(item, at, flat);
  };
  for (const [name, item] of Object.entries(value)) {
    one(key === undefined ? escape(name) : `${key}.${escape(name)}`, item);
  }
  return flat;
}

function kindOf(item, key) {
  if (item === null) return ['n', ''];
  if (Array.isArray(item)) return ['l', String(item.length)];
  switch (typeof item) {
    case 'boolean': return ['b', String(item)];
    case 'string': return ['s', item];
    case 'bigint':
      if (BigInt.asIntN(64, item) !== item) break;
      return ['i', String(item)];
    case 'number':
      if (Number.isSafeInteger(item) && !Object.is(item, -0)) return ['i', String(item)];
      return ['d', Object.is(item, -0) ? '-0.0' : String(item).replace('Infinity', 'inf').replace('NaN', 'nan')];
    case 'object': return ['m', String(Object.keys(item).length)];
    default:
  }
  throw new TypeError(`${key}: a configuration has no such value`);
}

// Writes a snapshot, in place of the one at the path: Config.open(path) reads it.
function write(file, values, version = '') {
  const rc = addon.write(file, version, flatten(values, undefined, []));
  if (rc < 0) {
    const message = `${addon.strerror(rc)}, '${file}'`;
    throw Object.assign(new Error(message), { errno: rc, path: file });
  }
}

class Fake extends Config {
  #directory;
  #published = 0;

  constructor(values, version = '') {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pullet-fake-'));
    const file = path.join(directory, 'fake.snap');
    try {
      const page = Buffer.alloc(4096);
      page.write('PULGENP\x01', 'latin1');
      fs.writeFileSync(path.join(directory, 'fake.gen'), page);
      if (values !== undefined) write(file, values, version);
      super(file, { waitFirst: values === undefined });
    } catch (error) {
      fs.rmSync(directory, { recursive: true, force: true });
      throw error;
    }
    this.#directory = directory;
    if (values !== undefined) this.#published = 1;
    this.confirm();
  }

  get #snapshot() {
    return path.join(this.#directory, 'fake.snap');
  }

  // The next version; who waits is woken.
  publish(values, version = '') {
    write(this.#snapshot, values, version);
    this.#published++;
    this.confirm();
    this.#tell({ withdrawn: 0, generation: this.#published });
  }

  // refresh() and wait() throw EIDRM until the next publish().
  withdraw() {
    fs.rmSync(this.#snapshot, { force: true });
    this.#tell({ withdrawn: 1, confirmed_ms: 0 });
  }

  // Sets age, in milliseconds, and whether it is stale.
  confirm({ age = 0, stale = false } = {}) {
    const now = Math.floor(Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000);
    this.#write({ confirmed_ms: Math.max(1, now - age - Number(stale)), stale_ms: Number(stale) });
  }

  close() {
    super.close();
    fs.rmSync(this.#directory, { recursive: true, force: true });
  }

  #tell(fields) {
    const futex = fs.readFileSync(path.join(this.#directory, 'fake.gen')).readUInt32LE(16);
    this.#write({ ...fields, futex: (futex + 1) % 2 ** 32 });
  }

  #write(fields) {
    const fd = fs.openSync(path.join(this.#directory, 'fake.gen'), 'r+');
    try {
      for (const [name, value] of Object.entries(fields)) {
        const [at, size] = FIELDS[name];
        const bytes = Buffer.alloc(8);
        bytes.writeBigUInt64LE(BigInt(value));
        fs.writeSync(fd, bytes, 0, size, at);
      }
    } finally {
      fs.closeSync(fd);
    }
  }
}

module.exports = { Fake, write };
