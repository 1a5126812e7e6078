// A browser is killed or frozen in the middle of an answer: when the room notices, and when the next token comes.
//   node e2e/bench/recovery.mjs --models DIR --devices 4 --rounds 3 [--lose host] [--at 500 --tokens 700]
// The last device that holds blocks and is not the host is lost, or the host, which has a deputy; POTLUCK_… as in stages.mjs.
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { ask, until } from '../harness/table.mjs';
import { record } from './results.mjs';
import { Room, options } from './room.mjs';

const { models, title, devices, rounds, context, out, tokens, at, prompt, lose } = options({
  tokens: { type: 'string', default: '200' },
  at: { type: 'string', default: '20' },
  lose: { type: 'string', default: 'worker' },
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
    const written = now.tokens_received;
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
      const [asker, lost] = lose === 'host' ? [room.devices.at(-1).page, room.devices[0]] : [room.host, room.devices.at(-1)];
      if (lose === 'host') {
        await room.host.getByLabel('If this device leaves').selectOption('anyone');
        await until(asker, ({ deputy }) => deputy !== null);
      }
      const question = { max_tokens: Number(tokens), temperature: 0, raw: true };
      const calm = await ask(asker, prompt, question);
      await asker.evaluate(watch);
      const begun = await asker.evaluate(() => window.potluck.status().tokens_received);
      const asked = ask(asker, prompt, question);
      await until(asker, (now) => now.tokens_received >= begun + Number(at), `${at} tokens are here`);
      const lostAt = Date.now();
      if (loss === 'kill') await lost.kill();
      else lost.freeze();
      const answer = await asked;
      const seen = await asker.evaluate(() => window.stopWatching());
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
await record(lose === 'host' ? 'deputy' : 'recovery', [
  { label: `${lose === 'host' ? 'the host' : 'one'} of ${devices} browsers killed: time until the next token (slowest of ${rounds})`, value: slowest('kill'), unit: 's', target: '3 s', peer: 'DGP: 7 s' },
  { label: `${lose === 'host' ? 'the host' : 'one'} of ${devices} browsers frozen: time until the next token (slowest of ${rounds})`, value: slowest('freeze'), unit: 's', target: '6 s', peer: 'DGP: 7 s' },
]);
