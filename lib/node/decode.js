'use strict';
// One version as an object of a shape: Config.decode(). A value of another type is an error, and
// never the default; what is missing, or null, is the default.

const GETTERS = {
  string: ['getString', 'a text'],
  int: ['getInt', 'an integer'],
  number: ['getNumber', 'a number'],
  boolean: ['getBoolean', 'true or false'],
  duration: ['getDuration', 'a duration such as "10s"'],
  size: ['getSize', 'a size such as "64KiB"'],
  any: ['get', 'a value'],
};
const ABSENT = Symbol('absent');

class DecodeError extends Error {
  constructor(key, what, path, generation) {
    super(`${path}, generation ${generation}: ${key || 'the configuration'} ${what}`);
    Object.assign(this, { name: 'DecodeError', code: 'ERR_PULLET_DECODE', key, path, generation });
  }
}

class Optional {
  constructor(of, fallback) { Object.assign(this, { of, fallback }); }
}

class Record {
  constructor(of) { Object.assign(this, { of, record: true }); }
}

const optional = (of, fallback) => new Optional(of, fallback);
const record = (of) => new Record(of);

const join = (key, name) => {
  const segment = name.replace(/[.\\]/g, '\\$&');
  return key === undefined ? segment : `${key}.${segment}`;
};

function nameOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string': return 'another text';
    case 'boolean': return 'true or false';
    case 'object': return 'a mapping';
    default: return typeof value === 'bigint' || Number.isInteger(value) ? 'an integer' : 'a number';
  }
}

// What fits all calls of one decode() is in `from`: the config, its path.
function read(from, shape, key) {
  const fail = (what) => new DecodeError(key, what, from.path, from.config.generation);
  const value = key === undefined ? from.config.toObject() : from.config.get(key, ABSENT);
  const missing = value === ABSENT || value === null;
  if (shape instanceof Optional) {
    if (!missing) return read(from, shape.of, key);
    return typeof shape.fallback === 'object' ? structured(shape.fallback) : shape.fallback;
  }
  if (missing) throw fail(value === null ? 'is null' : 'is missing');
  const wrong = (wanted) => fail(`must be ${wanted}, but is ${nameOf(value)}`);
  if (typeof shape === 'string' && Object.hasOwnProperty.call(GETTERS, shape)) {
    const [getter, wanted] = GETTERS[shape];
    const found = from.config[getter](key, ABSENT);
    if (found === ABSENT) throw wrong(wanted);
    return found;
  }
  if (Array.isArray(shape) && shape.length === 1) {
    if (!Array.isArray(value)) throw wrong('a list');
    return value.map((_, i) => read(from, shape[0], join(key, String(i))));
  }
  if (typeof shape !== 'object' || shape === null || Array.isArray(shape)) {
    throw new TypeError(`${key || 'decode'}: nothing can be decoded as ${String(shape)}`);
  }
  if (typeof value !== 'object' || Array.isArray(value)) throw wrong('a mapping');
  const of = (name) => (shape instanceof Record ? shape.of : shape[name]);
  const names = Object.keys(shape instanceof Record ? value : shape);
  return Object.fromEntries(names.map((name) => [name, read(from, of(name), join(key, name))]));
}

// A default of its own for each who decodes.
function structured(value) {
  if (Array.isArray(value)) return value.map(structured);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, structured(v)]));
}

function decode(config, shape, prefix, path) {
  return read({ config, path }, shape, prefix);
}

module.exports = { DecodeError, decode, optional, record };
