// What checks of layers cost a stage's device for a token, in a browser: rows that come in are hashed and kept, rows that go out are
// hashed. Microseconds, the best and the middle of the rounds.
//   cargo build -p potluck-swarm --features testing --example rows --profile web --target wasm32-unknown-unknown
//   cargo build -p potluck-bundle
//   target/debug/potluck-bundle target/wasm32-unknown-unknown/web/examples/rows.wasm /tmp/rows
//   node e2e/bench/rows.mjs /tmp/rows
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { serve } from '../peers/server.mjs';

import { median } from './hops.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '20' }, tokens: { type: 'string', default: '512' } },
});
const folder = resolve(positionals[0]);
writeFileSync(join(folder, 'page.html'), '<!doctype html><title>rows</title><link rel="icon" href="data:," />');

const server = await serve({ rows: folder });
const device = await Device.start('rows', { gpu: false });
try {
  await device.page.goto(`${server.url}/rows/page.html`);
  const table = {};
  for (const width of [1024, 2048, 4096, 8192]) {
    const rounds = await device.page.evaluate(measure, { width, tokens: Number(values.tokens), rounds: Number(values.rounds) });
    const shown = (micros) => Math.round(10 * micros) / 10;
    table[`${width} values a token`] = { 'best, µs': shown(Math.min(...rounds)), 'middle, µs': shown(median(rounds)) };
  }
  console.table(table);
  if (device.errors.length > 0) console.log(device.errors.slice(0, 3).join('\n'));
} finally {
  await device.stop();
  server.stop();
}

/** Runs in the page: microseconds a token, of each round. */
async function measure({ width, tokens, rounds }) {
  const { default: init, TokenRows } = await import('/rows/rows.js');
  await init();
  const rows = new TokenRows(tokens, width);
  return Array.from({ length: rounds }, () => {
    const begun = performance.now();
    rows.check();
    return (1000 * (performance.now() - begun)) / tokens;
  });
}
