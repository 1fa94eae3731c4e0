'use strict';
// Prints a configuration, then each change to it, until Ctrl-C: node example.js [--once] NAME_OR_PATH

const { Config } = require('.');

function show(config) {
  const age = config.age === null ? 'not confirmed yet' : `confirmed ${config.age} ms ago`;
  console.log(`# generation ${config.generation}, version '${config.version}', ${age}`);
  for (const [key, value] of config) {
    if (typeof value !== 'object' || value === null) console.log(key, '=', value);
  }
}

async function main(argv) {
  const once = argv[0] === '--once';
  const name = argv[once ? 1 : 0];
  if (argv.length !== (once ? 2 : 1)) throw new Error('usage: node example.js [--once] NAME_OR_PATH');
  const config = Config.open(name, { waitFirst: !once });
  if (config.generation) show(config);
  if (!once) for await (const newer of config.watch()) show(newer);
  config.close();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`example.js: ${error.message}`);
  process.exitCode = 1;
});
