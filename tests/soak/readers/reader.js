'use strict';
// The soak's reader in Node.js, which does what reader.c does.
const { Config } = require('../../../lib/node');

const KEYS = ['n', ...Array.from({ length: 12 }, (_, i) => `k${i}`), 'pad', 'end'];
let versions = 0;

class Reader {
  constructor(name) {
    Object.assign(this, { name, generation: 0, n: 0, ended: false });
    this.config = Config.open(name, { waitFirst: true });
    if (this.config.generation !== 0) this.check();
  }

  check() {
    const { config, name } = this;
    let sum = 2166136261;
    for (const key of KEYS) {
      for (const byte of Buffer.from(`${config.getString(key, '')}\n`)) {
        sum = Math.imul(sum ^ byte, 16777619) >>> 0;
      }
    }
    const generation = config.generation;
    const n = config.getInt('n', -1);
    const said = config.getString('sum');
    if (said !== String(sum)) {
      console.log(`wrong: ${name}, version ${n}: the sum is ${said}, of what is there ${sum}`);
    }
    if (generation < this.generation || n < this.n) {
      console.log(`wrong: ${name} went back from version ${this.n} of generation ${this.generation} ` +
        `to ${n} of ${generation}`);
    }
    Object.assign(this, { generation, n, ended: config.getString('end') === 'yes' });
    versions++;
  }

  async moveOn(wait) {
    try {
      if (wait ? await this.config.wait({ timeout: 20 }) : this.config.refresh()) this.check();
    } catch (error) {
      console.log(`wrong: ${this.name}: ${error}`);
    }
  }
}

async function main() {
  const readers = process.argv.slice(2).map((name) => new Reader(name));
  for (let turn = 0; !readers.every((reader) => reader.ended); turn++) {
    await readers[turn % readers.length].moveOn(true);
    for (const reader of readers) await reader.moveOn(false);
  }
  console.log(`Node.js: ${versions} versions`);
  for (const reader of readers) reader.config.close();
}

main();
