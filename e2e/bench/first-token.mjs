// Time to the first token on this browser's adapter, as a person sees it: host, wait, send. A fresh browser for each round; the
// second answer of a round starts a new conversation.
//   node e2e/bench/first-token.mjs --models public/models --rounds 5
import { loadavg } from 'node:os';
import { writeFile } from 'node:fs/promises';

import { median } from './hops.mjs';
import { record } from './results.mjs';
import { Room, options } from './room.mjs';

const more = { text: { type: 'string', default: 'What is the capital of France?' } };
const { models, title, rounds, context, out, text } = options(more);

const runs = [];
for (let round = 1; round <= rounds; round++) {
  const room = await Room.open({ models, title, context });
  try {
    for (const answer of ['first', 'second']) {
      const { timings } = await room.host.evaluate((text) => window.potluck.chat(text, { max_tokens: 8, temperature: 0 }), text);
      runs.push({ round, answer, ...timings, load: loadavg()[0] });
      const { prompt_tokens, first_token_ms } = timings;
      const load = loadavg()[0].toFixed(1);
      console.log(`${round}, ${answer} answer: ${first_token_ms.toFixed(0)} ms to the first token (${prompt_tokens} of prompt), load ${load}`);
    }
    if (out) await writeFile(out, JSON.stringify({ date: new Date().toISOString(), text, runs }, null, 1));
  } finally {
    await room.close();
  }
}

await record('first-token', [
  { label: `${title || 'built-in model'}, from Send to the first token (median of ${rounds} fresh browsers)`, value: median(runs.filter((run) => run.answer === 'first').map((run) => run.first_token_ms)), unit: 'ms', target: '1,000 ms' },
]);
