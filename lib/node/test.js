'use strict';
// Tests of the binding against the golden images and an agent of thirty lines. See test.sh.

const assert = require('assert');
const { spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { Worker } = require('worker_threads');

const { Config, Key } = require('.');

const GOLDEN = path.join(__dirname, '..', '..', 'tests', 'golden');
const DEADLINE = 10000; // milliseconds: generous for a busy machine
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'pullet-node-'));
process.env.PULLET_RUNTIME_DIR = scratch;

const tests = [];
const test = (name, run) => tests.push([name, run]);
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const code = (name) => (error) => { assert.strictEqual(error.code, name); return true; };
const golden = (name) => path.join(GOLDEN, `${name}.snap`);
const json = (name) => JSON.parse(fs.readFileSync(path.join(GOLDEN, `${name}.json`), 'utf8'));

function xxh64(data) { // of at least 32 bytes, seed 0
  const [p1, p2, p3, p4, p5] = [0x9E3779B185EBCA87n, 0xC2B2AE3D27D4EB4Fn, 0x165667B19E3779F9n,
    0x85EBCA77C2B2AE63n, 0x27D4EB2F165667C5n];
  const u64 = (n) => BigInt.asUintN(64, n);
  const turn = (x, n) => u64(x << n | x >> (64n - n));
  const step = (acc, lane) => u64(turn(u64(acc + lane * p2), 31n) * p1);
  const lanes = [u64(p1 + p2), p2, 0n, u64(-p1)];
  let at = 0;
  for (; at + 32 <= data.length; at += 32) {
    for (let i = 0; i < 4; i++) lanes[i] = step(lanes[i], data.readBigUInt64LE(at + 8 * i));
  }
  let acc = u64([1n, 7n, 12n, 18n].reduce((sum, n, i) => sum + turn(lanes[i], n), 0n));
  for (const lane of lanes) acc = u64((acc ^ step(0n, lane)) * p1 + p4);
  acc = u64(acc + BigInt(data.length));
  for (; at + 8 <= data.length; at += 8) {
    acc = u64(turn(acc ^ step(0n, data.readBigUInt64LE(at)), 27n) * p1 + p4);
  }
  if (at + 4 <= data.length) {
    acc = u64(turn(acc ^ u64(BigInt(data.readUInt32LE(at)) * p1), 23n) * p2 + p3);
    at += 4;
  }
  for (; at < data.length; at++) acc = u64(turn(acc ^ u64(BigInt(data[at]) * p5), 11n) * p1);
  acc = u64((acc ^ acc >> 33n) * p2);
  acc = u64((acc ^ acc >> 29n) * p3);
  return acc ^ acc >> 32n;
}

class Agent { // publishes one.snap again and again, under a new generation; wakes nobody
  constructor(name) {
    this.image = fs.readFileSync(golden('one'));
    this.path = path.join(scratch, `${name}.snap`);
    this.fd = fs.openSync(path.join(scratch, `${name}.gen`), 'w+');
    const page = Buffer.alloc(4096);
    page.write('PULGENP\x01', 'latin1');
    page.writeBigUInt64LE(60000n, 32);
    fs.writeSync(this.fd, page);
    this.generation = 0;
  }

  publish(generation = this.generation + 1) {
    this.generation = generation;
    this.image.writeBigUInt64LE(BigInt(generation), 24);
    this.image.writeBigUInt64LE(xxh64(this.image.subarray(16)), 8);
    this.write(this.image);
    this.announce(generation);
  }

  write(data) {
    fs.writeFileSync(`${this.path}.new`, data);
    fs.renameSync(`${this.path}.new`, this.path);
  }

  announce(generation) {
    this.confirm(0);
    this.put(8, generation);
    this.put(16, generation); // the futex, and above it: not withdrawn
  }

  withdraw() {
    fs.unlinkSync(this.path);
    this.put(24, 0);
    this.put(16, 2 ** 32 + 1000 + this.generation);
  }

  confirm(agoMs) {
    this.put(24, Math.floor(os.uptime() * 1000) - agoMs);
  }

  put(at, n) {
    const data = Buffer.alloc(8);
    data.writeBigUInt64LE(BigInt(n));
    fs.writeSync(this.fd, data, 0, 8, at);
  }

  close() {
    fs.closeSync(this.fd);
  }
}

let names = 0;
async function withAgent(run) {
  const name = `web${names++}`;
  const agent = new Agent(name);
  agent.publish();
  const config = Config.open(name);
  try {
    await run(agent, config, name);
  } finally {
    config.close();
    agent.close();
  }
}

function exact(n) {
  return n >= -(2n ** 53n) + 1n && n <= 2n ** 53n - 1n ? Number(n) : n;
}

function expected(type, text, value) {
  switch (type) {
    case 'null': return null;
    case 'bool': return value === 'true';
    case 'int': return exact(BigInt(value));
    case 'double': return Number(value.replace('inf', 'Infinity').replace('nan', 'NaN'));
    default: return text;
  }
}

// First, while the heap is small and calm.
test('nothing leaks', () => withAgent(async (agent, config, name) => {
  const usage = async () => {
    for (let i = 0; i < 5; i++) { global.gc(); await sleep(5); } // finalizers run between
    return [process.memoryUsage().rss, fs.readFileSync('/proc/self/maps', 'utf8').split(scratch).length,
      fs.readdirSync('/proc/self/fd').length];
  };
  const round = async (n) => {
    for (let i = 0; i < n; i++) {
      agent.publish();
      if (i % 2) assert.ok(config.refresh());
      else assert.ok(await config.wait({ timeout: DEADLINE }));
      config.toObject();
      config.keys('x'.repeat(5000));
      assert.throws(() => Config.open('absent'));
      Config.open(name).get('only'); // never closed
      if (i % 200 === 0) await config.wait({ timeout: 1 });
    }
  };
  await round(500);
  const before = await usage();
  await round(1000);
  const after = await usage();
  assert.ok(after[0] - before[0] < 8 << 20, `${before[0]} ${after[0]}`);
  assert.ok(after[1] <= before[1] + 2, `${before[1]} ${after[1]}`);
  assert.strictEqual(after[2], before[2]);
}));

for (const name of ['types', 'empty', 'one', 'many', 'collide']) {
  test(`golden ${name}`, () => {
    const text = fs.readFileSync(path.join(GOLDEN, `${name}.json`), 'utf8');
    const want = JSON.parse(text);
    const config = Config.open(golden(name));
    assert.strictEqual(config.generation, exact(BigInt(/"generation": (\d+)/.exec(text)[1])));
    assert.strictEqual(config.version, want.version);
    assert.deepStrictEqual(config.keys(), want.keys.map((k) => k[0]));
    const entries = new Map(config.entries());
    for (const [key, type, content, value] of want.keys) {
      assert.ok(config.has(key), key);
      const got = config.get(key, 'fallback');
      assert.deepStrictEqual(entries.get(key), got, key);
      if (type === 'list' || type === 'map') {
        assert.strictEqual(Array.isArray(got), type === 'list', key);
        assert.strictEqual((type === 'list' ? got : Object.keys(got)).length, Number(value), key);
        assert.strictEqual(config.getString(key), undefined, key);
      } else {
        assert.ok(Object.is(got, expected(type, content, value)), key);
        assert.strictEqual(config.getString(key), type === 'null' ? undefined : content, key);
      }
    }
    for (const key of want.absent) {
      assert.ok(!config.has(key), key);
      assert.strictEqual(config.get(key), undefined);
      assert.strictEqual(config.get(key, 'fallback'), 'fallback');
    }
    config.close();
  });
}

test('refused files', () => {
  const cases = json('bad/bad');
  for (const [name, want] of Object.entries(cases)) {
    const file = golden(`bad/${name}`);
    if ('error' in want) {
      assert.throws(() => Config.open(file), (error) => {
        assert.ok([want.error || 'EBADMSG', want.error || 'EPROTO'].includes(error.code), name);
        assert.strictEqual(error.path, file);
        return true;
      });
    } else {
      const config = Config.open(file);
      for (const key of want.keys) assert.strictEqual(config.get(key), undefined, name);
      for (const [key, text] of want.good) assert.strictEqual(config.getString(key), text, name);
      config.toObject();
      config.close();
    }
  }
});

test('lists and maps are built', () => {
  const config = Config.open(golden('types'));
  const tree = config.toObject();
  const squares = [...Array(12).keys()].map((i) => i * i);
  assert.deepStrictEqual(tree.list, { empty: [], many: squares, servers: [{ host: 'a' }, { host: 'b' }] });
  assert.deepStrictEqual(config.get('list'), tree.list);
  assert.deepStrictEqual(config.get('list.servers.1'), { host: 'b' });
  assert.deepStrictEqual(tree['a.b'], { '..': 'two dots', 'c\\d': 'dot and backslash' });
  assert.deepStrictEqual(config.get('a\\.b'), tree['a.b']);
  assert.deepStrictEqual(config.keys('int.m'), ['int.max', 'int.min', 'int.minus']);
  assert.deepStrictEqual(config.keys('käse'), ['käse']);
  assert.deepStrictEqual(config.keys('x\0y'), []);
  assert.deepStrictEqual([...config.entries('bool.')], [['bool.no', false], ['bool.yes', true]]);
  assert.strictEqual([...config].length, config.keys().length);
  config.close();
});

test('typed getters', () => {
  const config = Config.open(golden('types'));
  const check = (method, good, bad) => {
    for (const [key, want] of Object.entries(good)) {
      const handle = config.key(key);
      for (let i = 0; i < 2; i++) { // the second time it is known
        assert.ok(Object.is(handle[method](), want), `${method} ${key}`);
        assert.ok(Object.is(handle[method]('x'), want), `${method} ${key}`);
      }
      assert.ok(Object.is(config[method](key), want), `${method} ${key}`);
      assert.ok(Object.is(config[method](key, 'x'), want), `${method} ${key}`);
    }
    for (const key of [...bad, 'absent', '', 'int.one\0', 'null.plain', 'map']) {
      assert.strictEqual(config[method](key), undefined, `${method} ${key}`);
      assert.strictEqual(config[method](key, 'x'), 'x', `${method} ${key}`);
      const handle = config.key(key);
      for (const fallback of ['x', undefined, 'y']) {
        assert.strictEqual(handle[method](fallback), fallback, `${method} ${key}`);
      }
    }
  };
  check('getString', { 'int.hex': '0x1F', 'bool.no': 'false', 'string.empty': '' }, ['list']);
  check('getInt', { 'int.zero': 0, 'int.one': 1, 'int.max': 2n ** 63n - 1n, 'int.min': -(2n ** 63n),
    'string.like_int': 42 }, ['string.space', 'string.seven', 'double.tenth', 'bool.yes']);
  check('getNumber', { 'double.tenth': 0.1, 'int.one': 1, 'int.zero': 0, 'double.minus_zero': -0,
    'double.nan': NaN, 'double.inf': Infinity, 'string.like_double': 2.5 }, ['bool.yes']);
  check('getBoolean', { 'bool.yes': true, 'bool.no': false, 'string.like_bool': true }, ['int.one']);
  check('getDuration', { 'string.duration': 1500 }, ['int.one', 'string.size']);
  check('getSize', { 'string.size': 65536, 'int.one': 1, 'int.zero': 0 }, ['string.duration']);
  config.close();
});

// The golden table of values, and those that $PULLET_VALUES names, without their endings.
const tables = [path.join(GOLDEN, 'values'), ...(process.env.PULLET_VALUES || '').split(':')];
test('the table of values', () => {
  for (const stem of tables.filter(Boolean)) {
    const config = Config.open(`${stem}.snap`);
    const rows = fs.readFileSync(`${stem}.tsv`, 'utf8').split('\n')
      .filter((line) => line && line[0] !== '#');
    assert.strictEqual(rows.length, config.keys().length + 1); // one is absent
    for (const row of rows) {
      const [key, type, text, int, number, bool, duration, size] = row.split('\t');
      const answer = (method, want) => {
        const got = want === '-' ? undefined : want;
        assert.ok(Object.is(config[method](key), got), `${method} ${row}`);
        assert.ok(Object.is(config[method](key, 'x'), want === '-' ? 'x' : got), `${method} ${row}`);
        assert.ok(Object.is(config.key(key)[method](), got), `${method} ${row}`);
      };
      const of = (column, convert) => (column === '-' ? '-' : convert(column));
      const whole = (column) => exact(BigInt(column));
      const scalar = ['bool', 'int', 'double', 'string'].includes(type);
      assert.strictEqual(config.getString(key), scalar ? decodeURIComponent(text) : undefined, row);
      answer('getInt', of(int, whole));
      answer('getNumber', of(number, (n) => expected('double', text, n)));
      answer('getBoolean', of(bool, (b) => b === 'true'));
      answer('getDuration', of(duration, whole));
      answer('getSize', of(size, whole));
    }
    config.close();
  }
});

test('what cannot be opened', () => {
  assert.throws(() => Config.open('nothing'), code('ENOENT'));
  fs.writeFileSync(path.join(scratch, 'almost.snap'), '');
  assert.throws(() => Config.open('allmost'), (e) => e.message === `ENOENT: nothing is published under this name in ${scratch}: did you mean 'almost'?, 'allmost'`);
  fs.unlinkSync(path.join(scratch, 'almost.snap'));
  assert.throws(() => Config.open('nothing'), /nothing is published.*'nothing'/);
  for (const name of ['', '.hidden', 'a b', 'a\0b']) assert.throws(() => Config.open(name), code('EINVAL'));
  assert.throws(() => Config.open('x/'.repeat(1e6)), code('ENAMETOOLONG'));
  for (const name of [undefined, null, 5, {}, [], Symbol('s'), 5n]) {
    assert.throws(() => Config.open(name), code('ERR_INVALID_ARG_TYPE'));
  }
  assert.throws(() => Config.open('nothing', 5), code('ERR_INVALID_ARG_TYPE'));
});

test('wrong arguments', async () => {
  const config = Config.open(golden('types'));
  const methods = ['get', 'getString', 'getInt', 'getNumber', 'getBoolean', 'getDuration', 'getSize', 'has'];
  const odd = [undefined, null, 5, 5n, {}, [], Symbol('s'), () => 1, { toString() { throw new Error(); } }];
  for (const method of methods) {
    for (const key of odd) assert.throws(() => config[method](key), code('ERR_INVALID_ARG_TYPE'));
    for (const key of ['x'.repeat(2 ** 28), 'ü'.repeat(2 ** 20), '\ud800', '\udc00'.repeat(300)]) {
      assert.ok([undefined, false].includes(config[method](key)));
    }
    assert.throws(() => Config.prototype[method].call({}, 'a'), TypeError);
  }
  for (const n of [251, 252, 253, 254, 255, 256, 257]) { // about the size of a buffer
    for (const c of ['x', 'ü', '語', '🐔']) assert.ok(!config.has('y'.repeat(n % 5) + c.repeat(n)));
  }
  assert.strictEqual(config.get('x'.repeat(200)), 'a long key');
  for (const prefix of odd.slice(1)) {
    assert.throws(() => config.keys(prefix), code('ERR_INVALID_ARG_TYPE'));
    assert.throws(() => config.entries(prefix), code('ERR_INVALID_ARG_TYPE'));
  }
  assert.deepStrictEqual(config.keys('x'.repeat(2 ** 26)), []);
  for (const options of [null, 5, { timeout: NaN }, { timeout: '5' }, { signal: 5 }, { signal: {} }]) {
    await assert.rejects(config.wait(options), code('ERR_INVALID_ARG_TYPE'));
  }
  config.close();
});

test('the addon itself, misused', async () => {
  const { explain, handle, strerror, write, ...addon } = require(process.env.PULLET_NODE_ADDON); // eslint-disable-line
  assert.throws(() => strerror({}), TypeError);
  assert.throws(() => strerror(), TypeError);
  for (const odd of [[], ['a'], [1, -2], ['a', {}]]) assert.throws(() => explain(...odd), TypeError);
  assert.strictEqual(typeof explain('x'.repeat(1e5), -2), 'string');
  for (const odd of [[], ['a', 'b'], ['a', 'b', {}], ['a', 'b', [1, 2, 3]], [1, 'b', []]]) {
    assert.throws(() => write(...odd), TypeError);
  }
  assert.strictEqual(typeof strerror(-(2 ** 31)), 'string');
  assert.strictEqual(Object.keys(addon).length, 19);
  for (const [name, call] of Object.entries(addon)) {
    for (const odd of [{}, null, 5, Object.create(handle()), addon, new Date(), undefined]) {
      assert.throws(() => call(odd, 'a', true), TypeError, name);
    }
    const h = handle();
    if (!['open', 'close', 'unpoll'].includes(name)) assert.throws(() => call(h, 'a', true), code('EBADF'));
    assert.strictEqual(addon.open(h, golden('types'), false), 0);
    assert.ok(addon.open(h, golden('types'), false) < 0);
    for (const args of [[], [{}], [5, 5], ['', {}], [Symbol('s')]]) {
      try { await call(h, ...args); } catch (error) { assert.ok(error.code); }
    }
    addon.close(h);
    addon.close(h);
    assert.ok(addon.open(h, golden('types'), false) < 0);
  }
  const h = handle();
  addon.open(h, golden('types'), false);
  assert.strictEqual(addon.poll(h, () => assert.fail('it was replaced')), 0);
  await new Promise((resolve) => { assert.strictEqual(addon.poll(h, resolve), 0); });
  assert.strictEqual(addon.poll(h, () => assert.fail('it was closed')), 0);
  addon.close(h);
  addon.unpoll(h);
});

test('a setter that runs while it reads cannot close it', () => {
  const config = Config.open(golden('types'));
  const seen = [];
  Object.defineProperty(Array.prototype, '3', { // eslint-disable-line no-extend-native
    configurable: true,
    set() {
      delete Array.prototype[3];
      for (const use of [() => config.close(), () => config.refresh()]) {
        try { use(); } catch (error) { seen.push(error.code); }
      }
    },
  });
  try { config.keys(); } finally { delete Array.prototype[3]; }
  assert.deepStrictEqual(seen, ['EBUSY', 'EBUSY']);
  assert.ok(config.has('int.one'));
  config.close();
});

test('wait first', async () => {
  const config = Config.open('later', { waitFirst: true });
  assert.deepStrictEqual([config.generation, config.version, config.keys()], [0, '', []]);
  assert.deepStrictEqual(config.toObject(), {});
  assert.ok(!config.refresh());
  assert.strictEqual(await config.wait({ timeout: 20 }), false);
  const waiting = config.wait({ timeout: DEADLINE });
  const agent = new Agent('later');
  agent.publish();
  assert.strictEqual(await waiting, true);
  assert.strictEqual(config.get('only'), 'value');
  config.close();
  agent.close();
});

test('a key moves with its config', () => withAgent((agent, config, name) => {
  const [only, absent, late] = [config.key('only'), config.key('absent'),
    Config.open('late', { waitFirst: true }).key('only')];
  const first = only.getString();
  assert.ok(only instanceof Key && only.name === 'only' && typeof first === 'string');
  assert.strictEqual(late.getString('x'), 'x');
  const at = agent.image.indexOf('only\0') + 5;
  agent.image[at] = 0x23; // #
  agent.publish();
  assert.strictEqual(only.getString(), first);
  assert.strictEqual(absent.get(5), 5);
  assert.ok(config.refresh());
  for (let i = 0; i < 2; i++) {
    assert.strictEqual(only.getString(), `#${first.slice(1)}`);
    assert.strictEqual(only.get(), config.get('only'));
    assert.strictEqual(absent.get(6), 6);
  }
  config.close();
  for (const method of ['get', 'getString', 'getInt']) {
    assert.throws(() => only[method](), code('EBADF'));
  }
  assert.throws(() => config.key('only'), code('EBADF'));
  const types = Config.open(golden('types'));
  const list = types.key('list');
  list.get().empty.push(1); // a copy of its own each time
  assert.deepStrictEqual(list.get(), types.get('list'));
  for (const odd of [undefined, null, 5, {}]) {
    assert.throws(() => types.key(odd), code('ERR_INVALID_ARG_TYPE'));
  }
  types.close();
  assert.strictEqual(Config.open(name).key('only').getString(), `#${first.slice(1)}`);
}));

test('closed', async () => {
  const config = Config.open(golden('types'));
  const kept = config.entries();
  config.close();
  config.close();
  for (const use of [() => config.get('a'), () => config.getInt('a'), () => config.getString('a'),
    () => config.has('a'), () => config.keys(), () => config.entries(), () => config.toObject(),
    () => config.refresh(), () => config.generation, () => config.version, () => config.age,
    () => config.stale]) assert.throws(use, code('EBADF'));
  await assert.rejects(config.wait(), code('EBADF'));
  for await (const c of config.watch()) assert.fail(c);
  assert.ok([...kept].length > 50);
  if (Symbol.dispose) Config.open(golden('one'))[Symbol.dispose]();
});

test('refresh, age and stale', () => withAgent((agent, config) => {
  assert.ok(!config.refresh());
  agent.publish();
  assert.strictEqual(config.generation, 1);
  assert.ok(config.refresh());
  assert.strictEqual(config.generation, 2);
  assert.ok(config.age >= 0 && config.age < 30000);
  assert.ok(!config.stale);
  agent.confirm(70000);
  assert.ok(config.age >= 69000);
  assert.ok(config.stale);
  const copy = Config.open(golden('one'));
  assert.deepStrictEqual([copy.age, copy.stale], [null, true]);
  copy.close();
}));

test('a damaged new version leaves the old one', () => withAgent(async (agent, config) => {
  agent.write(Buffer.concat([agent.image.subarray(0, -1), Buffer.from('!')]));
  agent.announce(2);
  assert.throws(() => config.refresh(), code('EBADMSG'));
  agent.announce(3);
  await assert.rejects(config.wait({ timeout: DEADLINE }), code('EBADMSG'));
  assert.deepStrictEqual([config.get('only'), config.generation], ['value', 1]);
  assert.strictEqual(await config.wait({ timeout: 50 }), false);
  const waiting = config.wait({ timeout: DEADLINE }); // there is no second handle now
  await sleep(20);
  agent.publish(4);
  assert.strictEqual(await waiting, true);
}));

test('withdrawn, until it comes back', () => withAgent(async (agent, config, name) => {
  assert.strictEqual(config.withdrawn, false);
  agent.withdraw();
  assert.deepStrictEqual([config.withdrawn, config.stale, config.age], [true, true, null]);
  assert.throws(() => config.refresh(), code('EIDRM'));
  assert.throws(() => config.refresh(), code('EIDRM')); // not once: nobody goes on without knowing
  assert.strictEqual(config.generation, 1);
  assert.throws(() => Config.open(name), code('EIDRM'));
  const empty = Config.open(name, { waitFirst: true });
  assert.deepStrictEqual([empty.refresh(), empty.withdrawn], [false, true]);
  empty.close();
  assert.strictEqual(await config.wait({ timeout: 20 }), false); // that it is gone was said
  const back = config.wait({ timeout: DEADLINE });
  agent.publish(1); // the same: it is there again all the same
  assert.strictEqual(await back, true);
  assert.deepStrictEqual([config.refresh(), config.withdrawn], [false, false]);
  const both = [config.wait({ timeout: DEADLINE }), config.wait({ timeout: DEADLINE })]
    .map((w) => assert.rejects(w, code('EIDRM')));
  agent.withdraw();
  await Promise.all(both);
  agent.publish(2);
  assert.ok(config.refresh());
}));

test('wait: timeout, a new version, a free event loop', () => withAgent(async (agent, config) => {
  const begin = performance.now();
  assert.strictEqual(await config.wait({ timeout: 200 }), false);
  assert.ok(performance.now() - begin >= 195);
  assert.strictEqual(await config.wait({ timeout: 0 }), false);
  assert.strictEqual(await config.wait({ timeout: -5 }), false);
  let ticks = 0;
  const timer = setInterval(() => { ticks++; config.get('only'); config.toObject(); }, 5);
  const both = [config.wait(), config.wait({ timeout: DEADLINE })];
  assert.strictEqual(await config.wait({ timeout: 100 }), false); // while the others wait
  agent.publish();
  assert.deepStrictEqual(await Promise.all(both), [true, true]);
  clearInterval(timer);
  assert.ok(ticks > 5);
  assert.strictEqual(config.generation, 2);
}));

test('wait: abort', () => withAgent(async (agent, config) => {
  const before = new AbortController();
  before.abort();
  await assert.rejects(config.wait({ signal: before.signal }), { name: 'AbortError' });
  const abort = new AbortController();
  const begin = performance.now();
  setTimeout(() => abort.abort(), 50);
  await assert.rejects(config.wait({ signal: abort.signal }), { name: 'AbortError' });
  assert.ok(performance.now() - begin < 900);
  agent.publish();
  assert.strictEqual(await config.wait({ signal: new AbortController().signal }), true);
}));

test('close while a wait runs', () => withAgent(async (agent, config) => {
  const begin = performance.now();
  const waits = [config.wait(), config.wait({ timeout: 5000 })].map((w) => assert.rejects(w, code('EBADF')));
  setTimeout(() => config.close(), 30);
  await Promise.all(waits);
  assert.ok(performance.now() - begin < 900);
}));

test('watch', () => withAgent(async (agent, config) => {
  const seen = [];
  setTimeout(() => agent.publish(), 30);
  for await (const c of config.watch()) {
    assert.strictEqual(c, config);
    seen.push(c.generation);
    if (seen.length === 2) setTimeout(() => config.close(), 30);
    else agent.publish();
  }
  assert.deepStrictEqual(seen, [2, 3]);
}));

test('many that wait leave threads of the pool to others', async () => {
  const agent = new Agent('many');
  agent.publish();
  const configs = [...Array(12)].map(() => Config.open('many'));
  const waits = configs.map((c) => c.wait({ timeout: DEADLINE }));
  const begin = performance.now();
  for (let i = 0; i < 10; i++) await fs.promises.stat('/');
  assert.ok(performance.now() - begin < 900);
  agent.publish();
  assert.ok((await Promise.all(waits)).every((moved) => moved));
  configs.forEach((c) => c.close());
  agent.close();
});

function child(script) {
  const begin = performance.now();
  return new Promise((resolve) => {
    const p = spawn(process.execPath, ['-e', `const { Config } = require(${JSON.stringify(__dirname)});
      const c = Config.open(${JSON.stringify(golden('types'))}); ${script}`], { stdio: 'inherit' });
    p.on('exit', (status, signal) => resolve([status, signal, performance.now() - begin]));
  });
}

test('a process can end while it waits', async () => {
  for (const [script, want] of [
    ['c.wait(); setTimeout(() => process.exit(7), 50)', 7],
    ['const a = new AbortController(); c.wait({ signal: a.signal }).catch(() => {}); setTimeout(() => a.abort(), 50)', 0],
    ['c.wait().catch(() => {}); setTimeout(() => c.close(), 50)', 0],
    ['for (let i = 0; i < 9; i++) Config.open("/nothing/there", { waitFirst: true }).wait(); setTimeout(() => process.exit(3), 50)', 3],
    ['globalThis.c = c; c.toObject()', 0],
  ]) {
    const [status, signal, ms] = await child(script);
    assert.deepStrictEqual([status, signal], [want, null], script);
    assert.ok(ms < DEADLINE, script);
  }
});

test('worker threads, ended while they wait', async () => {
  const script = `const { Config } = require(${JSON.stringify(__dirname)});
    const c = Config.open(${JSON.stringify(golden('types'))});
    c.wait(); require('worker_threads').parentPort.postMessage(c.get('int.one'));`;
  for (let i = 0; i < 3; i++) {
    const worker = new Worker(script, { eval: true });
    assert.strictEqual(await new Promise((resolve) => { worker.once('message', resolve); }), 1);
    await worker.terminate();
  }
});

require('./test_cases.js')(test, DEADLINE);

function bench() {
  const config = Config.open(golden('types'));
  const file = path.join(scratch, 'small.json');
  fs.writeFileSync(file, JSON.stringify({ db: { host: 'db.example.com', port: 5432 }, debug: false }));
  process.env.BENCH_HOST = 'db.example.com';
  const cases = {
    'get string': () => config.get('string.host'),
    'getInt': () => config.getInt('int.one'),
    'getBoolean': () => config.getBoolean('bool.yes'),
    'get missing': () => config.get('absent', 1),
    'refresh, no page': () => config.refresh(),
    'process.env.X': () => process.env.BENCH_HOST,
    'JSON.parse(readFileSync(55 bytes))': () => JSON.parse(fs.readFileSync(file, 'utf8')).db.host,
    'toObject, types.snap': () => config.toObject(),
  };
  for (const [name, run] of Object.entries(cases)) {
    for (let i = 0; i < 2000; i++) run();
    const n = /JSON|toObject|no page/.test(name) ? 5000 : 500000;
    const begin = process.hrtime.bigint();
    for (let i = 0; i < n; i++) run();
    console.log(`${String(Math.round(Number(process.hrtime.bigint() - begin) / n)).padStart(8)} ns  ${name}`);
  }
  config.close();
}

async function main() {
  let passed = 0;
  let failed = 0;
  for (const [name, run] of tests) {
    try {
      await run();
      passed++;
      console.log(`  ok   ${name}`);
    } catch (error) {
      failed++;
      console.log(`  FAIL ${name}\n${error.stack}`);
    }
  }
  if (process.env.BENCH) bench();
  fs.rmSync(scratch, { recursive: true, force: true });
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed || passed !== tests.length ? 1 : 0;
}

main();
