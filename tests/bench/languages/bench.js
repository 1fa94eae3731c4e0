'use strict';
// Node.js: the addon, Map, process.env, JSON.parse. Called by languages.py.
const fs = require('fs');
const path = require('path');

const { Config } = require('../../../lib/node');

const ROUNDS = 5;
const [folder, ...keys] = process.argv.slice(2);
const file = path.join(folder, 'config.json');
const parse = () => JSON.parse(fs.readFileSync(file, 'utf8'));
let sink = 0;

function run(read, n) {
  const begin = process.cpuUsage();
  for (let i = 0; i < n; i++) sink += read(keys[i & 15]).length;
  const { user, system } = process.cpuUsage(begin);
  return (user + system) * 1000;
}

function measure(read) {
  let n = 2;
  while (run(read, n) < 50e6) n *= 2;
  const ns = Array.from({ length: ROUNDS }, () => run(read, n) / n);
  return ns.sort((a, b) => a - b)[ROUNDS >> 1];
}

const config = Config.open(path.join(folder, 'config.snap'));
const all = parse();
const named = keys.map((key) => config.key(key));
let at = 0;
console.log(measure((key) => config.getString(key, '')),
  measure(() => named[at++ & 15].getString('')),
  measure(() => (config.refresh() ? 'moved' : '')),
  measure((key) => all[key]),
  measure((key) => process.env[key]),
  measure((key) => parse()[key]), 'JSON, JSON.parse');
