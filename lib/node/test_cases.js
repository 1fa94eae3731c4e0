'use strict';
// tests/golden/cases.json, which says how to read it; what an application does: event loop, decode,
// fake. test.js runs these.

const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');

const { Config, DecodeError, optional, record } = require('.');
const { Fake, write } = require('./testing.js');

const GOLDEN = path.join(__dirname, '../../tests/golden/cases.json');
const IMAGES = process.env.PULLET_CASES;
const FIELDS = { magic: [0, 8], generation: [8, 8], futex: [16, 4], withdrawn: [20, 4], confirmed_ms: [24, 8], stale_ms: [32, 8] };
const GETTERS = { string: 'getString', int: 'getInt', double: 'getNumber', bool: 'getBoolean', duration_ms: 'getDuration', size: 'getSize' };
const ERRORS = { 'not published': 'ENOENT', withdrawn: 'EIDRM', damaged: 'EBADMSG', foreign: 'EPROTO' };
const ABSENT = Symbol('absent');
const SERVICE = {
  name: 'string',
  port: optional('int', 80),
  ratio: optional('number', 0.5),
  debug: optional('boolean', false),
  timeout: optional('duration', 5000),
  limit: optional('size', 1048576),
  note: optional('string', null),
  tags: optional(['string'], []),
  labels: optional(record('string'), {}),
  db: { host: 'string', port: optional('int', 5432) },
  servers: optional([{ host: 'string', weight: optional('int', 1) }], []),
};

class World {
  constructor(name, directory) {
    Object.assign(this, { name, directory, path: path.join(directory, 'web.snap'), page: path.join(directory, 'web.gen') });
  }

  image({ number, flip, cut }) {
    const data = fs.readFileSync(path.join(IMAGES, `${this.name}-${number}.snap`));
    if (flip !== undefined) data[flip < 0 ? data.length + flip : flip] ^= 1;
    fs.writeFileSync(`${this.path}.new`, data.subarray(0, cut));
    fs.renameSync(`${this.path}.new`, this.path);
  }

  write(file, fields, blank) {
    if (blank) {
      const page = Buffer.alloc(4096);
      page.write('PULGENP\x01', 'latin1');
      fs.writeFileSync(file, page);
    }
    const fd = fs.openSync(file, 'r+');
    for (const [name, [at, size]] of Object.entries(FIELDS)) {
      if (fields[name] === undefined) continue;
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64LE(BigInt(fields[name]));
      fs.writeSync(fd, bytes, 0, size, at);
    }
    fs.closeSync(fd);
  }

  act(step) {
    switch (step.do) {
      case 'image': return this.image(step);
      case 'page': return this.write(this.page, step, !fs.existsSync(this.page));
      case 'new page':
        this.write(`${this.page}.new`, step, true);
        return fs.renameSync(`${this.page}.new`, this.page);
      case 'remove': return fs.unlinkSync(path.join(this.directory, step.file));
      default: throw new Error(`what is ${step.do}`);
    }
  }

  get(key) {
    const value = this.config.get(key, ABSENT);
    assert.strictEqual(this.config.has(key), value !== ABSENT);
    if (value === ABSENT) return null;
    if (Array.isArray(value)) return ['list', '', String(value.length)];
    const text = this.config.getString(key, '');
    if (value === null) return ['null', '', ''];
    switch (typeof value) {
      case 'object': return ['map', '', String(Object.keys(value).length)];
      case 'string': return ['string', text, ''];
      case 'boolean': return ['bool', text, String(value)];
      case 'bigint': return ['int', text, String(value)];
      default: return [/^[-+]?(0x[0-9a-fA-F]+|0o[0-7]+|\d+)$/.test(text) ? 'int' : 'double', text, value];
    }
  }

  call(step) {
    const { config } = this;
    if (GETTERS[step.call]) {
      const found = config[GETTERS[step.call]](step.key, null);
      assert.strictEqual(config.key(step.key)[GETTERS[step.call]](null), found);
      return found;
    }
    switch (step.call) {
      case 'open':
        if (config) config.close();
        this.config = undefined;
        this.config = Config.open(this.path, { waitFirst: Boolean(step.wait_first) });
        return undefined;
      case 'get': return this.get(step.key);
      case 'keys': return config.keys(step.prefix);
      case 'tree': return config.toObject();
      case 'decode': return config.decode(SERVICE, undefined, { strict: step.strict });
      case 'count': return config.keys().length;
      case 'refresh': return config.refresh();
      default: return config[step.call];
    }
  }

  // The file has numbers as texts.
  same(found, is, call) {
    if (call === 'get' && found && found[2] !== is[2]) {
      this.same(found[2], is[2], 'int');
      found[2] = is[2];
    }
    if (typeof is !== 'string' || typeof found === 'string') assert.deepStrictEqual(found, is);
    else if (typeof found === 'number') assert.ok(Object.is(found, Number(is.replace('inf', 'Infinity').replace('nan', 'NaN'))), `${found}`);
    else assert.strictEqual(String(found), is);
  }

  run(step) {
    if (step.do) return this.act(step);
    if (step.error === undefined) return this.same(this.call(step), step.is, step.call);
    let thrown;
    try { this.call(step); } catch (error) { thrown = error; }
    assert.ok(thrown, 'nothing is thrown');
    if (step.error !== 'decode') {
      assert.strictEqual(thrown.code, ERRORS[step.error]);
      return assert.strictEqual(thrown.path, this.path);
    }
    assert.ok(thrown instanceof DecodeError, thrown);
    assert.deepStrictEqual([thrown.key, thrown.path, thrown.generation, thrown.code],
      [step.key, this.path, this.config.generation, 'ERR_PULLET_DECODE']);
    assert.deepStrictEqual(thrown.problems.map(({ key }) => key), step.keys || [step.key]);
    for (const says of step.says || []) assert.ok(thrown.message.includes(says), thrown.message);
    const { generation } = this.config; // 0: nothing is open, and the message says why
    return assert.ok(thrown.message.startsWith(generation ? `${this.path}, generation ${generation}: ${step.key} ` : `${this.path}: `));
  }
}

module.exports = (test, DEADLINE) => {
  for (const one of JSON.parse(fs.readFileSync(GOLDEN)).cases) {
    test(`case ${one.name}`, () => {
      const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pullet-case-'));
      const world = new World(one.name, directory);
      try {
        one.steps.forEach((step, number) => {
          try {
            world.run(step);
          } catch (error) {
            error.message = `step ${number}, ${JSON.stringify(step)}: ${error.message}`;
            throw error;
          }
        });
      } finally {
        if (world.config) world.config.close();
        fs.rmSync(directory, { recursive: true });
      }
    });
  }

  const withFake = async (values, run) => {
    const config = new Fake(values);
    try { await run(config); } finally { config.close(); }
  };
  const bounded = (promise) => Promise.race([promise, new Promise((_, reject) => {
    setTimeout(() => reject(new Error('it takes too long')), DEADLINE).unref();
  })]);

  test('for await sees each version in the event loop', () => withFake({ n: 1 }, async (config) => {
    const seen = [];
    config.publish({ n: 2 });
    await bounded((async () => {
      for await (const c of config.watch()) {
        seen.push([c.generation, c.get('n')]);
        if (seen.length === 20) break;
        c.publish({ n: c.get('n') + 1 });
      }
    })());
    assert.deepStrictEqual(seen, Array.from({ length: 20 }, (_, i) => [i + 2, i + 2]));
  }));

  test('an AbortSignal ends a wait and a watch', () => withFake({ n: 1 }, async (config) => {
    for (const begin of [(signal) => config.wait({ signal }), (signal) => config.watch({ signal }).next()]) {
      const controller = new AbortController();
      const waiting = begin(controller.signal);
      await new Promise(setImmediate);
      controller.abort();
      await assert.rejects(bounded(waiting), { name: 'AbortError' });
    }
    config.publish({ n: 2 });
    assert.ok(await bounded(config.wait()));
    assert.strictEqual(await config.wait({ timeout: 5 }), false);
  }));

  test('a hundred wait at a time', async () => {
    const configs = Array.from({ length: 100 }, () => new Fake({ n: 1 }));
    const waits = configs.map((c) => c.wait());
    await new Promise(setImmediate);
    configs.forEach((c) => c.publish({ n: 2 }));
    assert.deepStrictEqual(await bounded(Promise.all(waits)), configs.map(() => true));
    configs.forEach((c) => c.close());
  });

  test('a fake is a config', async () => {
    const values = { text: 'x', yes: true, none: null, int: -1, big: 2n ** 63n - 1n, real: 0.1, list: [1, [2], {}],
      map: { 'a.b': { '\\': 'c' } }, '': 'empty', käse: '🐔', wait: '10s' };
    await withFake(values, async (config) => {
      assert.ok(config instanceof Config);
      assert.deepStrictEqual(config.toObject(), values);
      assert.deepStrictEqual([config.generation, config.stale, config.getDuration('wait')], [1, false, 10000]);
      config.confirm({ age: 3600000, stale: true });
      assert.ok(config.stale && config.age >= 3600000);
      config.withdraw();
      assert.throws(() => config.refresh(), { code: 'EIDRM' });
      config.publish({ a: 1 }, 'v2');
      assert.ok(config.refresh());
      assert.deepStrictEqual([config.version, config.withdrawn], ['v2', false]);
    });
    await withFake(undefined, async (config) => {
      assert.deepStrictEqual([config.generation, config.toObject()], [0, {}]);
      const waiting = config.wait();
      config.publish({ n: 1 });
      assert.ok(await bounded(waiting));
    });
    for (const odd of [{ a: undefined }, { a: Symbol('s') }, { a: 2n ** 63n }, { a: '\0' }, { a: () => 1 }]) {
      assert.throws(() => new Fake(odd), TypeError);
    }
    assert.throws(() => write('no-slash.snap', {}), Error);
  });

  test('decode, and its errors', () => withFake({ a: { b: [1, '2'] }, 'x.y': { z: true }, big: 2n ** 60n, real: 1.5 }, async (config) => {
    assert.deepStrictEqual(config.decode(['int'], 'a.b'), [1, 2]);
    assert.deepStrictEqual(config.decode({ 'x.y': 'any', more: optional({ a: 'int' }) }), { 'x.y': { z: true }, more: undefined });
    assert.deepStrictEqual(config.decode(record('boolean'), 'x\\.y'), { z: true });
    for (const [shape, what] of [
      [{ 'x.y': { z: 'int' } }, 'x\\.y.z must be an integer such as 17, but is true or false'],
      [{ a: ['int'] }, 'a must be a list, but is a mapping'], [{ a: { b: {} } }, 'a.b must be a mapping, but is a list'],
      [{ a: { c: 'any' } }, 'a.c is missing'], [{ big: 'duration' }, 'big must be a duration such as 10s or 1h30m, but is an integer'],
      [{ real: 'int' }, 'real must be an integer such as 17, but is a number'],
    ]) {
      assert.throws(() => config.decode(shape), (e) => e instanceof DecodeError && e.message.endsWith(`generation 1: ${what}`));
    }
    const shape = { maxConns: 'int', a: { b: ['size'] }, 'x.y': { zz: 'int' }, big: ['int'], rael: 'number', real: 'duration' };
    assert.throws(() => config.decode({ ...shape, a: { b: ['boolean'], bb: 'int' } }), (e) => e.key === 'maxConns'
      && e.problems.map(({ key }) => key).join() === 'maxConns,a.b.0,a.b.1,a.bb,x\\.y.zz,big,rael,real'
      && e.message.includes('a.b.1 must be true or false, but is a text of another form; '));
    assert.throws(() => config.decode({ reall: 'number', bg: 'int', BIG: 'int', ...Object.fromEntries([...'abcdefg'].map((n) => [`no${n}`, 'int'])) }),
      (e) => e.message.endsWith(': reall is missing: did you mean real?; bg is missing; BIG is missing: did you mean big?; '
        + 'noa is missing; nob is missing; noc is missing; nod is missing; noe is missing; and 2 more'));
    for (const odd of ['text', 5, null, [], ['int', 'int']]) assert.throws(() => config.decode({ a: odd }), /^TypeError: a: nothing can be decoded as .*: there are 'string', .* and record\(\.\.\.\)$/);
  }));
};
