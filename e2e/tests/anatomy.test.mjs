// The anatomy of a trip to experts (bench/experts): from recordings and marks with known parts, these parts are found again.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PARTS, betweenWords, bytesAToken, summary, trips } from '../bench/experts/anatomy.mjs';

const VECTOR = 8_300;
/** Milliseconds of each part, in their order, for each of two holders. Both get the host's parts. */
const HOST = { mapped: 0.05, seal: 0.2, open: 0.15, submit: 0.3, gpu: 0.9 };
const HOLDERS = [
  { out: 0.5, open: 0.1, submit: 0.25, gpu: 0.8, mapped: 0.06, seal: 0.12, back: 0.5 },
  { out: 0.6, open: 0.11, submit: 0.26, gpu: 1.4, mapped: 0.07, seal: 0.13, back: 0.6 },
];

/** A recording of so many blocks, each of which asks both holders; holders' clocks are `ahead` of the host's. */
function recorded(blocks, ahead = [0, 0]) {
  const host = { origin: 1_000, trace: [], marks: [] };
  const holders = [0, 1].map(() => ({ origin: 1_000, trace: [], marks: [] }));
  const line = (device, millis, kind, what) => device.trace.push({ millis, kind, what });
  const mark = (device, at, kind, value) => device.marks.push({ at, kind, value });
  // A message without a vector, which is none of a trip's.
  mark(host, 0.5, 'came', 90);
  mark(host, 1, 'map', 1);
  let [now, call, map] = [2, 10, 1];
  for (let block = 0; block < blocks; block += 1) {
    mark(host, now, 'mapped', map);
    const routed = now + HOST.mapped;
    line(host, routed, 'event', `computed Ticket(${block}) in 0.90 ms`);
    const ends = HOLDERS.map((parts, index) => {
      line(host, routed, 'action', `to RelayRoute(${index}): expert call ${call + index} block ${block} rows 1`);
      const sent = routed + HOST.seal;
      const device = holders[index];
      let at = sent + parts.out + ahead[index];
      mark(device, at, 'came', VECTOR);
      line(device, (at += parts.open), 'event', `from 01020304: expert call ${call + index} block ${block} rows 1`);
      mark(device, (at += parts.submit), 'map', map);
      mark(device, (at += parts.gpu), 'mapped', map);
      line(device, (at += parts.mapped), 'action', `to RelayRoute(9): expert result ${call + index} in ${parts.gpu} ms`);
      mark(device, (at += parts.seal), 'sent', 2 * VECTOR);
      return { index, sent, came: at - ahead[index] + parts.back };
    });
    // Both calls leave in one message.
    mark(host, ends[0].sent, 'sent', 2 * VECTOR);
    for (const { came } of ends) mark(host, came, 'came', 2 * VECTOR);
    let done;
    for (const { index, came } of ends) line(host, (done = came + HOST.open), 'event', `from 0506070${index}: expert result ${call + index} in 1.00 ms`);
    line(host, done, 'note', `experts of block ${block} in ${(done - routed).toFixed(2)} ms, 1.00 ms of an engine, 1 bytes for 1, asked ab`);
    [map, call] = [map + 1, call + 2];
    mark(host, done + HOST.submit, 'map', map);
    now = done + HOST.submit + HOST.gpu;
    mark(host, now, 'mapped', map);
    host.marks.sort((a, b) => a.at - b.at);
  }
  // The next block's result is the same one.
  host.marks = host.marks.filter((mark, index) => index === 0 || mark.kind !== 'mapped' || host.marks[index - 1].kind !== 'mapped');
  return { host, holders };
}

const EXPECTED = [HOST.mapped, HOST.seal, 0.6, 0.11, 0.26, 1.4, 0.07, 0.13, 0.6, HOST.open, HOST.submit, HOST.gpu];

test('each part of the slowest holder is found, and they add up', () => {
  const { trips: found, missed, clocks_apart } = trips(recorded(5));
  assert.deepEqual([found.length, missed], [5, { own: 0, several: 0, unknown: 0 }]);
  for (const { block, parts } of found) {
    assert.equal(parts.length, PARTS.length);
    parts.forEach((part, index) => assert.ok(Math.abs(part - EXPECTED[index]) < 1e-6, `block ${block}, ${PARTS[index][0]}: ${part}, not ${EXPECTED[index]}`));
  }
  assert.ok(clocks_apart.every((apart) => Math.abs(apart) < 1e-6), `the clocks are one: ${clocks_apart}`);
  const rows = summary(found);
  const sum = EXPECTED.reduce((sum, part) => sum + part, 0);
  assert.ok(Math.abs(rows.at(-1).mean - sum) < 1e-6, `${rows.at(-1).mean}, not ${sum}`);
});

test('clocks that differ are set by the fastest ways out and back', () => {
  const { trips: found, clocks_apart } = trips(recorded(3, [0.4, -0.7]));
  assert.ok(Math.abs(Math.abs(clocks_apart[1]) - 0.7) < 1e-6, `${clocks_apart}`);
  for (const { parts } of found) assert.ok(Math.abs(parts[2] - 0.6) < 1e-6 && Math.abs(parts[8] - 0.6) < 1e-6, `${parts}`);
});

test('a trip of a prompt, and one whose recording is cut, are left out and counted', () => {
  const room = recorded(3);
  room.host.trace.forEach((line) => (line.what = line.what.replace('block 1 rows 1', 'block 1 rows 64')));
  room.holders[1].trace = room.holders[1].trace.filter(({ what }) => !/ 15 /.test(what));
  const { trips: found, missed } = trips(room);
  assert.deepEqual([found.map(({ block }) => block), missed], [[0], { own: 0, several: 1, unknown: 1 }]);
});

test('words that come together share their time and their messages, and those of the prompt are not theirs', () => {
  const marks = [['sent', 900, 1], ['words', 1, 5], ['sent', 100, 6], ['words', 1, 8], ['got', 50, 9], ['words', 2, 14], ['sent', 70, 15]].map(([kind, value, at]) => ({ kind, value, at }));
  assert.deepEqual(betweenWords(marks), [{ millis: 3, tokens: 1 }, { millis: 3, tokens: 2 }]);
  assert.equal(bytesAToken(marks), 50);
});
