// Time per token over 1 to N stages on one GPU: what a further stage costs without network latency, and where the time goes. Each
// stage is a browser of its own, or with --tabs a tab of one browser; --relayed sends the tabs' messages through the relay, to compare.
//   node e2e/bench/stages.mjs --models DIR --devices 4 --rounds 5 [--tabs [--relayed]]
// POTLUCK_CHROMIUM and POTLUCK_CHROMIUM_FLAGS choose the browser, POTLUCK_RELAY the relay, POTLUCK_PAGE the page.
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { hops, intervals, median, quantile } from './hops.mjs';
import { record } from './results.mjs';
import { Room, options } from './room.mjs';

const { models, title, devices, rounds, context, out, tabs, relayed } = options();
const TOKENS = 128;
const TEXT = 'Once upon a time there was a table';

const runs = [];
const room = await Room.open({ models, title, context, tabs, relayed });
try {
  for (let count = 1; count <= devices; count++) {
    if (count > 1) await room.join();
    await room.ask(TEXT, TOKENS);
    for (let round = 1; round <= rounds; round++) {
      const answer = await room.ask(TEXT, TOKENS);
      const { plan } = await room.status();
      const millis = answer.timings.decode_ms / (answer.timings.answer_tokens - 1);
      const traces = await room.traces();
      const spent = hops(traces, millis, plan.network_hops);
      // One device decodes several tokens at a time.
      const apart = count > 1 ? intervals(traces[0]) : [];
      runs.push({ devices: count, round, millis, intervals: apart, load: loadavg()[0], stages: plan.stages.length, network_hops: plan.network_hops, expected: plan.token_ms, spent });
    }
    const mine = runs.filter((run) => run.devices === count).map((run) => run.millis);
    const [lowest, middle, highest] = [Math.min(...mine), median(mine), Math.max(...mine)].map((millis) => millis.toFixed(2));
    console.log(`${count} devices: ${middle} ms a token (${lowest}–${highest}), load ${loadavg()[0].toFixed(1)}`);
    const apart = runs.filter((run) => run.devices === count).flatMap((run) => run.intervals);
    if (count > 1) console.log(`  tokens come ${quantile(apart, 0.5).toFixed(2)} ms apart, 95% of them at most ${quantile(apart, 0.95).toFixed(2)}`);
    const { devices: each, hop } = runs.at(-1).spent;
    const stays = each.map(({ stay, gpu }) => `${stay.toFixed(2)} (GPU ${gpu.toFixed(2)})`);
    console.log(`  in the last answer a token stays ${stays.join(', ')} ms; each network hop ${hop.toFixed(2)} ms`);
    if (out) await writeFile(out, JSON.stringify({ date: new Date().toISOString(), tokens: TOKENS, runs }, null, 1));
  }
  const millis = (count) => median(runs.filter((run) => run.devices === count).map((run) => run.millis));
  const figures = Array.from({ length: devices }, (_, index) => ({
    label: index === 0 ? '1 device (multi-step decode)' : `${index + 1} devices`,
    value: millis(index + 1),
    unit: 'ms a token',
  }));
  if (devices > 1) {
    const value = (millis(devices) - millis(1)) / (devices - 1);
    figures.push({ label: 'each further device, mean', value, unit: 'ms a token', target: '2 ms' });
  }
  await record('stages', figures);
} finally {
  await room.close();
}
