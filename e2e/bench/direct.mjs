// Milliseconds a token in a room of two browsers on slow lines to the relay, through the relay and directly, in turns.
//   node e2e/bench/direct.mjs [--lines 0,5,20] [--tokens 60] [--rounds 3]
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { SlowLine } from '../harness/slow_line.mjs';
import { MB, ask, connectDirectly, contribute, host, isUpOn, status, until } from '../harness/table.mjs';
import { intervals, median, quantile } from './hops.mjs';
import { record } from './results.mjs';

const { values } = parseArgs({
  options: { lines: { type: 'string', default: '0,5,20' }, tokens: { type: 'string', default: '60' }, rounds: { type: 'string', default: '3' } },
});
const PROMPT = { max_tokens: Number(values.tokens), temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';
const path = ({ paths }) => paths[0]?.[1];

const figures = [];
for (const millis of values.lines.split(',').map(Number)) {
  const relay = await Relay.start({ models: make('six-blocks') });
  const line = await SlowLine.to(relay, millis);
  const devices = [await Device.start('host'), await Device.start('worker')];
  const [room, worker] = devices.map(({ page }) => page);
  try {
    const origin = new URL(line.through(relay.url)).origin;
    const link = await host(room, { url: origin }, { model: 'six-blocks', lends: 40 * MB, share: 'Everyone takes part', context: 512 });
    await contribute(worker, link, { lends: 40 * MB });
    await until(room, isUpOn(2));
    const runs = { relay: [], direct: [] };
    for (let round = 0; round < Number(values.rounds); round++)
      for (const way of ['relay', 'direct']) {
        await connectDirectly(room, way === 'direct' ? 'Always' : 'Never');
        await ask(room, TEXT, PROMPT);
        if (way === 'direct') await until(room, (status) => path(status)?.direct_ms > 0 && path(status).relay_ms > 0);
        const { timings } = await ask(room, TEXT, PROMPT);
        const apart = intervals(await room.evaluate(() => window.potluck.trace()), PROMPT.max_tokens - 5);
        runs[way].push({ millis: timings.decode_ms / (timings.answer_tokens - 1), apart, path: path(await status(room)) });
      }
    const told = Object.entries(runs).map(([way, runs]) => {
      const p99 = quantile(runs.flatMap(({ apart }) => apart), 0.99);
      return [way, median(runs.map(({ millis }) => millis)), p99];
    });
    for (const [way, middle, p99] of told) console.log(`${millis} ms to the relay, ${way}: ${middle.toFixed(1)} ms a token, 99% within ${p99.toFixed(1)}, load ${loadavg()[0].toFixed(1)}`);
    const { direct, direct_ms, relay_ms } = runs.direct.at(-1).path;
    console.log(`  round trips: ${direct_ms?.toFixed(2)} ms directly, ${relay_ms?.toFixed(2)} through the relay; taken: ${direct ? 'the channel' : 'the relay'}`);
    figures.push({ label: `two devices, ${millis} ms to the relay`, value: told[1][1], unit: 'ms a token', peer: `through the relay: ${told[0][1].toFixed(1)} ms` });
  } finally {
    for (const device of devices) await device.stop();
    await line.stop();
    await relay.stop();
  }
}
await record('direct', figures);
