// What a message from the node's worker to the page costs, as JSON text and as JavaScript values (serde-wasm-bindgen): microseconds
// to make and post it in the worker, and to read it in the page.
//   cargo build -p potluck-panel --example messages --profile web --target wasm32-unknown-unknown
//   cargo build -p potluck-bundle
//   target/debug/potluck-bundle target/wasm32-unknown-unknown/web/examples/messages.wasm /tmp/messages
//   node e2e/bench/messages.mjs /tmp/messages
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { serve } from '../peers/server.mjs';

import { median } from './hops.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '9' }, messages: { type: 'string', default: '2000' }, devices: { type: 'string', default: '8' } },
});
const folder = resolve(positionals[0]);
writeFileSync(join(folder, 'page.html'), '<!doctype html><title>messages</title><link rel="icon" href="data:," />');
writeFileSync(join(folder, 'worker.js'), `
import init, { Sample } from './messages.js';
await init();
onmessage = ({ data: { kind, way, count, devices } }) => {
  const samples = { status: () => Sample.status(devices), piece: () => Sample.piece(), trace: () => Sample.trace(1e6) };
  const sample = samples[kind]();
  const make = { text: () => sample.to_text(), values: () => sample.to_value(), exact: () => sample.to_exact_value() }[way];
  const begun = performance.now();
  for (let index = 0; index < count; index += 1) make();
  const made = performance.now();
  // A few at a time, as a node does: none waits long for the page.
  let left = count;
  let posting = 0;
  const some = () => {
    const from = performance.now();
    for (let index = 0; index < 20 && left > 0; index += 1, left -= 1) postMessage(make());
    posting += performance.now() - from;
    if (left > 0) setTimeout(some);
    else postMessage({ done: { make: made - begun, post: posting } });
  };
  some();
};
postMessage({ done: true });
`);

const server = await serve({ messages: folder });
const device = await Device.start('messages', { gpu: false });
try {
  await device.page.goto(`${server.url}/messages/page.html`);
  const table = {};
  for (const kind of ['status', 'piece', 'trace']) {
    const ways = Object.fromEntries(['text', 'values', 'exact'].map((way) => [way, []]));
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const way of Object.keys(ways)) {
        const question = { kind, way, count: Number(values.messages) / (kind === 'trace' ? 50 : 1), devices: Number(values.devices) };
        ways[way].push(await device.page.evaluate(measure, question));
      }
    }
    for (const [way, rounds] of Object.entries(ways)) {
      const of = (name) => Math.round(10 * median(rounds.map((round) => round[name]))) / 10;
      table[`${kind}, ${way}`] = { 'make, µs': of('make'), 'make and post': of('post'), 'take and read': of('read'), characters: rounds[0].characters };
    }
  }
  console.table(table);
  const objects = await device.page.evaluate(asObjects, { count: Number(values.messages), devices: Number(values.devices), rounds: Number(values.rounds) });
  console.log('a status as a plain object, as potluck.status() gives it, µs:', Object.fromEntries(Object.entries(objects).map(([way, rounds]) => [way, Math.round(10 * median(rounds)) / 10])));
  if (device.errors.length > 0) console.log(device.errors.slice(0, 3).join('\n'));
} finally {
  await device.stop();
  server.stop();
}

/** Runs in the page: microseconds a message. */
async function measure({ kind, way, count, devices }) {
  const { default: init, Sample, read_text, read_value } = await import('/messages/messages.js');
  await init();
  const samples = { status: () => Sample.status(devices), piece: () => Sample.piece(), trace: () => Sample.trace(1e6) };
  const sample = samples[kind]();
  const characters = sample.to_text().length;
  const read = way === 'text' ? read_text : read_value;
  const is = way === 'text' ? (data) => sample.is_text(data) : (data) => sample.is_value(data);
  const worker = new Worker('/messages/worker.js', { type: 'module' });
  let taken = 0;
  let checked = false;
  const heard = () => new Promise((done, failed) => {
    worker.onerror = failed;
    worker.onmessage = (event) => {
      const begun = performance.now();
      const data = event.data;
      if (data?.done) return done(data.done);
      if (checked) {
        read(data);
        taken += performance.now() - begun;
      } else if (!is(data)) {
        failed(new Error(`${way} became another message`));
      }
      checked = true;
    };
  });
  await heard();
  const sent = heard();
  worker.postMessage({ kind, way, count, devices });
  const { make, post } = await sent;
  worker.terminate();
  const micros = (millis, of) => (1000 * millis) / of;
  return { characters, make: micros(make, count), post: micros(post, count), read: micros(taken, count - 1) };
}

/** Runs in the page: microseconds to make a plain object of a status, by JSON and directly. */
async function asObjects({ count, devices, rounds }) {
  const { Sample } = await import('/messages/messages.js');
  const sample = Sample.status(devices);
  const ways = { 'JSON and JSON.parse': () => JSON.parse(sample.to_text()), 'serde-wasm-bindgen': () => sample.to_plain_value() };
  const times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [way, make] of Object.entries(ways)) {
      const begun = performance.now();
      for (let index = 0; index < count; index += 1) make();
      times[way].push((1000 * (performance.now() - begun)) / count);
    }
  }
  return times;
}
