// A worker's browser is killed or frozen in the middle of an answer: when the room notices, and when the next token comes.
//   node e2e/bench/recovery.mjs --models DIR --devices 4 --rounds 3
// The last device that holds blocks and is not the host is lost; POTLUCK_… as in stages.mjs.
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { until } from '../harness/table.mjs';
import { record } from './results.mjs';
import { Room, options } from './room.mjs';

const { models, title, devices, rounds, context, out, tokens, at, prompt } = options({
  tokens: { type: 'string', default: '200' },
  at: { type: 'string', default: '20' },
  prompt: { type: 'string', default: 'Once upon a time there was a table, and on the table stood a pot.' },
});

/** Samples the answer's length and the room every few milliseconds; keeps each change with its time. */
const watch = () => {
  const seen = { tokens: [], rooms: [] };
  let count = 0;
  let last = '';
  const timer = setInterval(() => {
    const now = window.potluck.status();
    const at = performance.timeOrigin + performance.now();
    const written = now.answering?.tokens ?? 0;
    if (written > count) seen.tokens.push([at, written]);
    count = written;
    const room = JSON.stringify([now.plan?.state, now.plan?.stages.map((stage) => stage.peer), now.peers.map(({ peer, status }) => [peer, status])]);
    if (room !== last) seen.rooms.push([at, room]);
    last = room;
  }, 5);
  window.stopWatching = () => {
    clearInterval(timer);
    return seen;
  };
};

const results = [];
for (let round = 1; round <= rounds; round++) {
  for (const loss of ['kill', 'freeze']) {
    const room = await Room.open({ models, title, context });
    try {
      while (room.devices.length < devices) await room.join();
      const calm = await room.ask(prompt, Number(tokens));
      await room.host.evaluate(watch);
      const asked = room.ask(prompt, Number(tokens));
      await until(room.host, (now) => now.answering?.tokens >= Number(at), `${at} tokens are here`);
      const lost = room.devices.at(-1);
      const lostAt = Date.now();
      if (loss === 'kill') await lost.kill();
      else lost.freeze();
      const answer = await asked;
      const seen = await room.host.evaluate(() => window.stopWatching());
      const noticed = seen.rooms.find(([when]) => when > lostAt);
      const next = seen.tokens.find(([when]) => noticed && when > noticed[0]);
      const same = JSON.stringify(answer.tokens) === JSON.stringify(calm.tokens);
      const result = { round, loss, devices, noticedMs: noticed[0] - lostAt, nextTokenMs: next[0] - noticed[0], same, load: loadavg()[0], seen };
      results.push(result);
      const text = same ? 'the text is the same' : 'THE TEXT IS ANOTHER';
      console.log(`${loss} ${round}: noticed after ${result.noticedMs.toFixed(0)} ms, next token ${result.nextTokenMs.toFixed(0)} ms later, ${text}, load ${result.load.toFixed(1)}`);
      if (loss === 'freeze') lost.thaw();
      if (out) await writeFile(out, JSON.stringify(results, null, 1));
    } finally {
      await room.close();
    }
  }
}

const slowest = (loss) => Math.max(...results.filter((result) => result.loss === loss).map((result) => result.noticedMs + result.nextTokenMs)) / 1000;
await record('recovery', [
  { label: `one of ${devices} browsers killed: time until the next token (slowest of ${rounds})`, value: slowest('kill'), unit: 's', target: '3 s', peer: 'DGP: 7 s' },
  { label: `one of ${devices} browsers frozen: time until the next token (slowest of ${rounds})`, value: slowest('freeze'), unit: 's', target: '6 s', peer: 'DGP: 7 s' },
]);
