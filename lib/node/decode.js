'use strict';
// One version as an object of a shape: Config.decode(). A value of another type is an error, and
// never the default; a missing key or null gives the default. One error lists all problems.

const GETTERS = {
  string: ['getString', 'a text'],
  int: ['getInt', 'an integer such as 17'],
  number: ['getNumber', 'a number such as 0.5'],
  boolean: ['getBoolean', 'true or false'],
  duration: ['getDuration', 'a duration such as 10s or 1h30m'],
  size: ['getSize', 'a size such as 64KiB'],
  any: ['get', 'a value'],
};
const ABSENT = Symbol('absent');
const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);

const MOST = 8; // problems in a message

class DecodeError extends Error {
  constructor(problems, path, generation, empty) {
    const told = problems.slice(0, MOST).map(({ key, what }) => `${key || 'the configuration'} ${what}`);
    if (problems.length > MOST) told.push(`and ${problems.length - MOST} more`);
    super(empty ? `${path}: ${empty}` : `${path}, generation ${generation}: ${told.join('; ')}`);
    Object.assign(this, { name: 'DecodeError', code: 'ERR_PULLET_DECODE', key: problems[0].key, problems, path, generation });
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
    case 'string': return 'a text';
    case 'boolean': return 'true or false';
    case 'object': return 'a mapping';
    default: return typeof value === 'bigint' || Number.isInteger(value) ? 'an integer' : 'a number';
  }
}

function wrong(from, key, wanted, value) {
  const is = nameOf(value);
  const more = is === 'a text' && !/^a (list|mapping)$/.test(wanted) ? ' of another form' : '';
  return fail(from, key, `must be ${wanted}, but is ${is}${more}`);
}

function fail(from, key, what) {
  from.problems.push({ key, what });
  return undefined;
}

// One character more, less or another one, or two swapped; not counting case, '-' and '_'.
function isNear(one, other) {
  let [a, b] = [one, other].map((name) => name.toLowerCase().replace(/[-_]/g, ''));
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  [a, b] = [a.slice(same), b.slice(same)];
  while (a && b && a.endsWith(b[b.length - 1])) [a, b] = [a.slice(0, -1), b.slice(0, -1)];
  return (a.length <= 1 && b.length <= 1) || (a.length === 2 && b.length === 2 && a[0] === b[1] && a[1] === b[0]);
}

// The first of members, of those that others has not, that has nearly this name.
function meant(name, members, others, key) {
  const near = name.length < 3 ? undefined : Object.keys(members).sort().find((n) => !has(others, n)
    && !/[\0- \x7f]/.test(n) && isNear(n, name));
  return near === undefined ? '' : `: did you mean ${join(key, near)}?`;
}

// What fits all calls of one decode() is in `from`: the config, its path, the problems so far.
// hint: appended to the problem of a missing key. A nested object that is missing is as an empty
// one; what decode() is asked for (top) must be there. Returns undefined after a problem.
function read(from, shape, key, hint = '', top = false) {
  const value = key === undefined ? from.config.toObject() : from.config.get(key, ABSENT);
  const missing = value === ABSENT || value === null;
  if (shape instanceof Optional) {
    if (!missing) return read(from, shape.of, key);
    return typeof shape.fallback === 'object' ? structured(shape.fallback) : shape.fallback;
  }
  if (missing && !top && isObject(shape)) return members(from, shape, key, {}, hint);
  if (missing) return fail(from, key, value === null ? 'is null' : `is missing${hint}`);
  if (typeof shape === 'string' && has(GETTERS, shape)) {
    const [getter, wanted] = GETTERS[shape];
    const found = from.config[getter](key, ABSENT);
    return found === ABSENT ? wrong(from, key, wanted, value) : found;
  }
  if (Array.isArray(shape) && shape.length === 1) {
    if (!Array.isArray(value)) return wrong(from, key, 'a list', value);
    return value.map((_, i) => read(from, shape[0], join(key, String(i))));
  }
  if (typeof shape !== 'object' || shape === null || Array.isArray(shape)) {
    throw new TypeError(`${key || 'decode'}: nothing can be decoded as ${String(shape)}: there are `
      + `${Object.keys(GETTERS).map((name) => `'${name}'`).join(', ')}, [shape], { name: shape }, optional(...) and record(...)`);
  }
  if (typeof value !== 'object' || Array.isArray(value)) return wrong(from, key, 'a mapping', value);
  if (shape instanceof Record) {
    return Object.fromEntries(Object.keys(value).map((name) => [name, read(from, shape.of, join(key, name))]));
  }
  return members(from, shape, key, value, '');
}

const isObject = (shape) => typeof shape === 'object' && shape !== null && !Array.isArray(shape) && !(shape instanceof Record);

function members(from, shape, key, value, hint) {
  const made = Object.fromEntries(Object.keys(shape).map((name) => [name,
    read(from, shape[name], join(key, name), has(value, name) ? '' : meant(name, value, shape, key) || hint)]));
  for (const name of from.strict ? Object.keys(value).sort() : []) {
    if (!has(shape, name)) fail(from, join(key, name), `is not known${meant(name, shape, value, key)}`);
  }
  return made;
}

// A default of its own for each who decodes.
function structured(value) {
  if (Array.isArray(value)) return value.map(structured);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, structured(v)]));
}

function decode(config, shape, prefix, strict, path, whyEmpty) {
  const from = { config, strict, path, problems: [] };
  const made = read(from, shape, prefix, '', true);
  if (from.problems.length) {
    throw new DecodeError(from.problems, path, config.generation, config.generation ? '' : whyEmpty());
  }
  return made;
}

module.exports = { DecodeError, decode, optional, record };
