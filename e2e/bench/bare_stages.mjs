// What a token takes over 1 to N stages in bare pages: as many dispatches, readbacks and messages as the 16 blocks of Llama-3.2-1B have,
// through the relay, without Potluck and without weights. Beside forecast.mjs and stages.mjs it says what of a stage is the browser's.
//   node e2e/bench/bare_stages.mjs [--devices 4] [--tokens 300] [--dispatches 112]
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { Relay } from '../harness/relay.mjs';
import { measureBareStages } from './experts/bare.mjs';
import { MeasuredRoom } from './experts/measured_room.mjs';
import { median, quantile } from './hops.mjs';
import { record } from './results.mjs';

const { values } = parseArgs({
  options: { devices: { type: 'string', default: '4' }, tokens: { type: 'string', default: '300' }, dispatches: { type: 'string', default: '112' } },
});
const models = mkdtempSync(join(tmpdir(), 'potluck-none-'));
const relay = await Relay.start({ models });
const figures = [];
try {
  for (let devices = 1; devices <= Number(values.devices); devices += 1) {
    const room = new MeasuredRoom();
    try {
      const dispatches = Math.ceil(Number(values.dispatches) / devices);
      const millis = (await measureBareStages(room, relay, { others: devices - 1, dispatches, tokens: Number(values.tokens) })).slice(20);
      const [middle, late] = [median(millis), quantile(millis, 0.95)];
      console.log(`bare pages, ${devices} stages of ${dispatches} dispatches: ${middle.toFixed(2)} ms a token, 95% within ${late.toFixed(2)}, load ${loadavg()[0].toFixed(1)}`);
      figures.push({ label: `bare pages, ${devices} stages`, value: middle, unit: 'ms a token' });
    } finally {
      await room.close();
    }
  }
  await record('bare-stages', figures);
} finally {
  await relay.stop();
  rmSync(models, { recursive: true });
}
