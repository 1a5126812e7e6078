// Time per token over 1 to N stages, each a browser of its own on one GPU: what a further stage costs without latency.
//   node e2e/bench/stages.mjs --models DIR --devices 4 --rounds 5
// POTLUCK_CHROMIUM and POTLUCK_CHROMIUM_FLAGS choose the browser, POTLUCK_RELAY the relay, POTLUCK_PAGE the page.
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { Room, options } from './room.mjs';

const { models, title, devices, rounds, context, out } = options();
const TOKENS = 128;
const TEXT = 'Once upon a time there was a table';

const runs = [];
const room = await Room.open({ models, title, context });
try {
  for (let count = 1; count <= devices; count++) {
    if (count > 1) await room.join();
    await room.ask(TEXT, TOKENS);
    for (let round = 1; round <= rounds; round++) {
      const answer = await room.ask(TEXT, TOKENS);
      const { plan } = await room.status();
      const millis = answer.timings.decode_ms / (answer.timings.answer_tokens - 1);
      runs.push({ devices: count, round, millis, load: loadavg()[0], stages: plan.stages.length, hops: plan.hops, expected: plan.token_ms });
    }
    const mine = runs.filter((run) => run.devices === count).map((run) => run.millis);
    const [lowest, middle, highest] = [Math.min(...mine), median(mine), Math.max(...mine)].map((millis) => millis.toFixed(2));
    console.log(`${count} devices: ${middle} ms a token (${lowest}–${highest}), load ${loadavg()[0].toFixed(1)}`);
    if (out) await writeFile(out, JSON.stringify({ date: new Date().toISOString(), tokens: TOKENS, runs }, null, 1));
  }
} finally {
  await room.close();
}

function median(values) {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[sorted.length >> 1];
}
