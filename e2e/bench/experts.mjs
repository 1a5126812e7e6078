// Experts in browsers: ms a token, prompts, and what a trip to the holders of a block's experts is made of. Cases are in experts/cases.mjs.
//   node e2e/bench/experts.mjs --work DIR [--shape qwen3-30b-a3b] [--cases resident,tabs,browsers-4,browsers-8,demand,whole] [--minutes 9]
//   node e2e/bench/experts.mjs --shape small          # the built-in model, for a machine without a GPU
//   node e2e/bench/experts.mjs --wire f16 --copies 1 --hedging off    # as the host dialog has it; bf16, int8; a number or adaptive
// DIR gets the generated files (1.94 GB with 4 blocks, 18.6 GB with 48); POTLUCK_SYNTHETIC is the program that makes them, POTLUCK_… as in
// README.md. With --recordings DIR, what its tables are made of is kept, too. After --minutes it ends, whatever is left; a case that fails, or
// takes longer than its limit, is told, and the next one begins.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { Relay } from '../harness/relay.mjs';
import { measureBare } from './experts/bare.mjs';
import { described, shapes } from './experts/cases.mjs';
import { measure } from './experts/measure.mjs';
import { MeasuredRoom } from './experts/measured_room.mjs';
import { anatomyTable, figures, table } from './experts/report.mjs';
import { record } from './results.mjs';

const root = resolve(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: {
    work: { type: 'string', default: join(root, 'e2e/out/experts') },
    shape: { type: 'string', default: 'qwen3-30b-a3b' },
    cases: { type: 'string' },
    minutes: { type: 'string', default: '9' },
    tokens: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '3' },
    prompts: { type: 'string' },
    temperature: { type: 'string', default: '0' },
    wire: { type: 'string', default: 'f32' },
    copies: { type: 'string' },
    hedging: { type: 'string' },
    out: { type: 'string' },
    recordings: { type: 'string' },
  },
});
const shape = shapes[values.shape];
if (!shape) throw new Error(`There is no shape ${values.shape}; there are ${Object.keys(shapes).join(', ')}.`);
const names = values.cases?.split(',') ?? shape.usual;
const unknown = names.filter((name) => !shape.cases[name]);
if (unknown.length > 0) throw new Error(`There is no case ${unknown}; there are ${Object.keys(shape.cases).join(', ')}.`);
const asked = {
  tokens: Number(values.tokens),
  rounds: Number(values.rounds),
  prompts: (values.prompts ?? shape.prompts).split(',').map(Number),
  temperature: Number(values.temperature),
  spreading: { wire: values.wire, copies: values.copies, hedging: values.hedging },
};
const out = resolve(values.out ?? join(root, 'bench/results/local/experts-runs.json'));
const end = Date.now() + 60_000 * Number(values.minutes);
const left = () => end - Date.now();

/** The folder that holds the file of so many blocks, and nothing else. */
function models(blocks) {
  if (!shape.file) return join(root, 'public/models');
  const folder = join(resolve(values.work), `${values.shape}-${blocks}`);
  const file = join(folder, 'experts.gguf');
  if (existsSync(file)) return folder;
  mkdirSync(folder, { recursive: true });
  const synthetic = process.env.POTLUCK_SYNTHETIC ?? join(root, 'target/release/examples/synthetic');
  execFileSync(synthetic, [...shape.file(blocks), `${file}.part`], { stdio: ['ignore', 'inherit', 'inherit'], timeout: Math.max(1, left()) });
  renameSync(`${file}.part`, file);
  return folder;
}

/** One case; `told`, if it could not be measured. */
async function run(name, relay) {
  const one = shape.cases[name];
  const limit = Math.min(1_000 * one.limit, left());
  const room = new MeasuredRoom();
  let timer;
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(new Error(`not done within ${Math.round(limit / 1_000)} s: ${room.step}`)), limit);
  });
  const began = Date.now();
  const work = one.kind === 'bare' ? measureBare(room, relay, one, values.wire) : measure(room, relay, one, { ...asked, context: shape.context, keep: (record) => keep(name, record) });
  // It goes on failing while the room closes.
  work.catch(() => {});
  try {
    return { ...(await Promise.race([work, late])), seconds: (Date.now() - began) / 1_000 };
  } catch (error) {
    return { failed: error.message.split('\n')[0], step: room.step, errors: room.errors(), seconds: (Date.now() - began) / 1_000 };
  } finally {
    clearTimeout(timer);
    await room.close();
  }
}

/** Keeps marks and recordings of a case's last round, if that is asked for. */
function keep(name, record) {
  if (!values.recordings) return;
  mkdirSync(values.recordings, { recursive: true });
  writeFileSync(join(values.recordings, `${name}.json`), JSON.stringify(record));
}

const relays = new Map();
const results = [];
try {
  for (const name of names) {
    if (left() < 20_000) {
      console.log(`== ${name}: no time left`);
      continue;
    }
    const one = shape.cases[name];
    console.log(`== ${name}: ${described(one, values)}; ${Math.round(left() / 1_000)} s left, load ${loadavg()[0].toFixed(1)}`);
    let result;
    try {
      if (!relays.has(one.blocks)) relays.set(one.blocks, await readyRelay(models(one.blocks)));
      result = await run(name, relays.get(one.blocks));
    } catch (error) {
      result = { failed: error.message.split('\n')[0] };
    }
    results.push({ name, what: described(one, values), ...result });
    if (result.failed) console.log(`   failed: ${result.failed}`);
    else for (const line of anatomyTable(result)) console.log(`   ${line}`);
    mkdirSync(join(out, '..'), { recursive: true });
    writeFileSync(out, JSON.stringify({ date: new Date().toISOString(), shape: values.shape, ...asked, results }, null, 1));
  }
} finally {
  for (const relay of relays.values()) await relay.stop();
}
console.log(table(results, asked.prompts).join('\n'));
console.log(`every run: ${out}`);
if (results.some((result) => !result.failed)) await record('experts', figures(results, asked.prompts));
process.exit(results.every((result) => !result.failed) ? 0 : 1);

/** A relay that has read its file. */
async function readyRelay(folder) {
  const relay = await Relay.start({ models: folder });
  while (left() > 0) {
    const { models } = await (await fetch(`${relay.url}/models`)).json();
    if (models.length > 0 && models.every((model) => model.state.phase === 'ready')) return relay;
    await new Promise((done) => setTimeout(done, 200));
  }
  await relay.stop();
  throw new Error('the relay has not read its file in time');
}
