// Browser engines on one GPU: one tab of each, and rooms of both, separate browsers through the relay. What a token takes, and how long a
// prompt of about a thousand tokens.
//   node e2e/bench/engines.mjs --models DIR --title TEXT --rounds 3 [--cases chromium,firefox,chromium+firefox]
// Firefox takes the Vulkan driver that VK_DRIVER_FILES names, and without it a software adapter.
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { median } from './hops.mjs';
import { record } from './results.mjs';
import { Room, options } from './room.mjs';

const CASES = 'chromium,firefox,chromium+firefox,firefox+chromium,chromium+chromium,firefox+firefox';
const { models, title, rounds, context, out, cases } = options({ cases: { type: 'string', default: CASES } });
const TOKENS = 128;
const TEXT = 'Once upon a time there was a table';

const runs = [];
for (const room of cases.split(',')) {
  try {
    await measure(room.split('+'));
  } catch (error) {
    console.log(`${room}: ${error.message.split('\n')[0]}`);
  }
  if (out) await writeFile(out, JSON.stringify({ date: new Date().toISOString(), tokens: TOKENS, runs }, null, 1));
}
const measured = [...new Set(runs.map((run) => run.room))];
await record('engines', measured.flatMap((room) => [
  { label: `${room}, a token`, value: of(room, 'token'), unit: 'ms' },
  { label: `${room}, a prompt of ${of(room, 'prompt_tokens')} tokens`, value: of(room, 'prompt'), unit: 'ms' },
]));

/** The first browser hosts; each takes part. */
async function measure(engines) {
  const name = engines.join(' + ');
  const room = await Room.open({ models, title, context, engines });
  try {
    for (const _ of engines.slice(1)) await room.join();
    await room.ask(TEXT, TOKENS);
    for (let round = 1; round <= rounds; round++) {
      const { timings } = await room.ask(TEXT, TOKENS);
      // Different from the start, so that nothing of an earlier prompt is reused.
      const asked = await room.ask(`${round} ${'the old mill by the river '.repeat(80)}`, 8);
      runs.push({
        room: name,
        round,
        token: timings.decode_ms / (timings.answer_tokens - 1),
        prompt: asked.timings.first_token_ms,
        prompt_tokens: asked.timings.prompt_tokens,
        expected: (await room.status()).plan.token_ms,
        load: loadavg()[0],
      });
    }
    const [token, prompt, tokens] = ['token', 'prompt', 'prompt_tokens'].map((key) => of(name, key));
    console.log(`${name}: ${token.toFixed(2)} ms a token, ${prompt.toFixed(0)} ms for a prompt of ${tokens}, load ${loadavg()[0].toFixed(1)}`);
  } finally {
    await room.close();
  }
}

function of(room, key) {
  return median(runs.filter((run) => run.room === room).map((run) => run[key]));
}
