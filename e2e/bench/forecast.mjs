// How well rooms of browsers are forecast: the milliseconds a token that the page expects after the first round, against the median token of
// the second one. Rooms are in forecast_rooms.mjs; each is measured for some rounds more, which also says what a further browser costs.
//   node e2e/bench/forecast.mjs --work DIR [--rooms browsers,tabs,unequal,stages,experts-4,experts-8,experts-tabs] [--rounds 5] [--minutes 9]
//   node e2e/bench/forecast.mjs --shape small         # the built-in model, for a machine without a GPU
// DIR gets the generated files; POTLUCK_SYNTHETIC is the program that makes them, POTLUCK_… as in README.md. A room that fails, or takes longer
// than its limit, is told, and the next one begins.
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { Relay } from '../harness/relay.mjs';
import { connectDirectly } from '../harness/table.mjs';
import { MeasuredRoom } from './experts/measured_room.mjs';
import { BAR, modelFolder, shapes } from './forecast_rooms.mjs';
import { median, quantile } from './hops.mjs';
import { record } from './results.mjs';
import { betweenTokens, watchWords } from './words.mjs';

const root = resolve(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: {
    work: { type: 'string', default: join(root, 'e2e/out/forecast') },
    shape: { type: 'string', default: 'large' },
    rooms: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    tokens: { type: 'string', default: '128' },
    minutes: { type: 'string', default: '9' },
    out: { type: 'string' },
  },
});
const rooms = shapes[values.shape];
const names = values.rooms?.split(',') ?? Object.keys(rooms);
const out = resolve(values.out ?? join(root, 'bench/results/local/forecast-runs.json'));
const end = Date.now() + 60_000 * Number(values.minutes);
const left = () => end - Date.now();
const [rounds, tokens] = [Number(values.rounds), Number(values.tokens)];
const TEXT = 'Once upon a time there was a table';
/** The page predicts anew each second. */
const PREDICTED = 1_500;
/** Direct connections come within this time, or not at all. */
const CONNECTING = 12_000;

const results = [];
for (const name of names) {
  if (left() < 20_000) console.log(`== ${name}: no time left`);
  else await inTime(name, rooms[name]).catch((error) => console.log(`== ${name} failed: ${error.message.split('\n')[0]}`));
}
const errors = results.map(({ error }) => Math.abs(error));
console.log(`${results.length} rooms, mean absolute error ${(100 * mean(errors)).toFixed(1)}%, median ${(100 * median(errors)).toFixed(1)}%`);
console.log(`every later round from the one before it: ${(100 * mean(results.flatMap(({ later }) => later.map(Math.abs)))).toFixed(1)}%`);
await record('forecast', [
  { label: `mean absolute error of ms a token, ${results.length} rooms of browsers`, value: 100 * mean(errors), unit: '%', target: BAR },
  ...results.map(({ what, token, forecast }) => ({ label: what, value: token, unit: 'ms a token', peer: `forecast after round 1: ${forecast.toFixed(2)}` })),
]);

/** One group of rooms within its limit. */
async function inTime(name, one) {
  const room = new MeasuredRoom();
  const limit = Math.min(1_000 * one.limit, left());
  let relay;
  let timer;
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(new Error(`not done within ${Math.round(limit / 1_000)} s: ${room.step}`)), limit);
  });
  const work = (async () => {
    relay = await Relay.start({ models: modelFolder(one.model, values.work) });
    await read(relay);
    await group(room, relay, name, one);
  })();
  // It goes on failing while the room closes.
  work.catch(() => {});
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    await room.close();
    await relay?.stop();
  }
}

/** The room that grows to each of `grows`, or the one room of its size; with `direct` also with direct connections. */
async function group(room, relay, name, one) {
  const sizes = one.grows ?? [one.others];
  room.step = 'it opens';
  await MeasuredRoom.open(room, relay, { ...one, others: sizes[0] });
  let direct = one.direct;
  if (!one.tabs) await connectDirectly(room.host, 'Never');
  for (const others of sizes) {
    while (room.pages.length <= others) await room.join(relay, one);
    await room.settle(one.kind, others);
    const what = one.what(others + 1);
    await measure(room, what);
    if (one.alone && others === 0) await alone(room);
    if (!direct || others === 0) continue;
    await connectDirectly(room.host, 'Always');
    room.step = `${what}: direct connections`;
    direct = await connected(room);
    if (direct) await measure(room, `${what}, directly`);
    else console.log(`${what}: no direct connection came`);
    await connectDirectly(room.host, 'Never');
  }
}

/** Asks until messages of the host go directly; false if that takes too long. */
async function connected(room) {
  for (const given_up = Date.now() + CONNECTING; Date.now() < given_up; ) {
    await room.ask(TEXT, tokens);
    const { paths } = await room.status();
    if (paths.some(([, { direct }]) => direct)) return true;
  }
  return false;
}

/** Rounds in a room; a forecast is made after each. */
async function measure(room, what) {
  room.step = `${what}: the first answer`;
  await room.ask(TEXT, tokens);
  const runs = [];
  for (let round = 1; round <= rounds; round += 1) {
    room.step = `${what}: round ${round}`;
    const before = (await room.status()).plan;
    await watchWords(room.host);
    const { timings } = await room.ask(TEXT, tokens);
    const apart = await betweenTokens(room.host);
    await new Promise((done) => setTimeout(done, PREDICTED));
    const { plan, drafts } = await room.status();
    runs.push({ before: before.token_ms, epoch: before.epoch, mean: timings.decode_ms / (timings.answer_tokens - 1), token: median(apart), p95: quantile(apart, 0.95), apart, plan, drafts, load: loadavg()[0] });
  }
  const off = runs.slice(1).map(({ before, token }) => before / token - 1);
  const apart = runs.flatMap((run) => run.apart);
  const [first, second] = runs;
  const result = {
    what,
    forecast: second.before,
    token: second.token,
    error: off[0],
    later: off.slice(1),
    median: median(apart),
    p95: quantile(apart, 0.95),
    mean: median(runs.map((run) => run.mean)),
    means: runs.map((run) => run.mean),
    changed: first.epoch !== runs.at(-1).plan.epoch,
    parts: parts(second.plan),
    runs,
  };
  results.push(result);
  const off2 = (100 * result.error).toFixed(0);
  console.log(`${what}: forecast ${result.forecast.toFixed(2)}, then ${result.token.toFixed(2)} ms a token (${off2}%); ${rounds} rounds: median ${result.median.toFixed(2)}, p95 ${result.p95.toFixed(2)}, means ${result.means.map((value) => value.toFixed(2)).join(' ')}; later ${result.later.map((value) => `${(100 * value).toFixed(0)}%`).join(' ')}; load ${loadavg()[0].toFixed(1)}${result.changed ? '; its plan changed' : ''}`);
  console.log(`  ${result.parts}`);
  save();
}

/** What a token of one browser takes that is computed alone: of two tokens the second one. */
async function alone(room) {
  room.step = 'single tokens';
  const millis = [];
  for (let count = 0; count < 40; count += 1) millis.push((await room.ask(`${count} ${TEXT}`, 2)).timings.decode_ms);
  console.log(`one browser without multi-step decode: ${median(millis).toFixed(2)} ms a token, p95 ${quantile(millis, 0.95).toFixed(2)}`);
  results.alone = millis;
  save();
}

/** Predicted and measured milliseconds of the stages and hops of a plan. */
function parts({ stages, hops, experts }) {
  const told = (list) => list.map(({ predicted_ms, measured_ms }) => `${predicted_ms.toFixed(2)}/${measured_ms.toFixed(2)}`).join(' ');
  const trips = experts ? `; trips ${experts.trips_ms.toFixed(2)}, of engines ${experts.trips_engine_ms.toFixed(2)}, own ${experts.own_ms.toFixed(2)}` : '';
  return `predicted/measured: stages ${told(stages)}; hops ${told(hops)}${trips}`;
}

function save() {
  mkdirSync(join(out, '..'), { recursive: true });
  writeFileSync(out, JSON.stringify({ date: new Date().toISOString(), rounds, tokens, alone: results.alone, results }));
}

function mean(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Waits until the relay has read its file. */
async function read(relay) {
  for (;;) {
    const { models } = await (await fetch(`${relay.url}/models`)).json();
    if (models.length > 0 && models.every((model) => model.state.phase === 'ready')) return;
    await new Promise((done) => setTimeout(done, 200));
  }
}
