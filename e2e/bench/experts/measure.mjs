// What is asked in the room of one case, and what is kept of it.
import { hops, median, quantile } from '../hops.mjs';
import { betweenWords, bytesAToken, summary, trips } from './anatomy.mjs';
import { MeasuredRoom, holding } from './measured_room.mjs';

const WORDS = 'once upon a time there was a table and on it stood a pot'.split(' ');

/** A text of so many words that begins with a word of its own, so nothing of its KV cache is there already. */
const text = (words, first) => Array.from({ length: words }, (_, index) => WORDS[(index === 0 ? first : index * index) % WORDS.length]).join(' ');

/** Measures a case; `room.step` says what is going on. */
export async function measure(room, relay, one, { tokens, rounds, prompts, temperature, spreading, context, keep }) {
  room.step = 'the room opens';
  const began = Date.now();
  const settled = await MeasuredRoom.open(room, relay, one, { context, ...spreading });
  const up = (Date.now() - began) / 1_000;

  room.step = 'the first answer';
  const first = await room.ask(text(16, 1), tokens, temperature);
  room.step = 'rounds';
  const records = [];
  for (let round = 0; round < rounds; round += 1) {
    const before = await room.status();
    const recorded = await room.askMarked(text(16, 2 + round), tokens, temperature);
    const after = await room.status();
    records.push({ ...recorded, before, after });
  }
  keep(records.at(-1));
  room.step = 'a round without marks';
  const unmarked = millis(await room.ask(text(16, 2), tokens, temperature));

  const asked = [];
  for (const length of prompts.filter((length) => length + 8 < context)) {
    room.step = `a prompt of ${length} tokens`;
    asked.push(await prompt(room, length, first.timings.prompt_tokens / 16));
  }

  const { plan, device, direct_frames, on_demand } = await room.status();
  const intervals = records.flatMap(({ host }) => betweenWords(host.marks));
  const spent = anatomy(one.kind, records.at(-1), plan);
  const { host, answer } = records.at(-1);
  return {
    up_seconds: up,
    members: settled.peers.length,
    holders: holding(settled).length,
    copies: settled.plan.experts?.mean_holders,
    first_answer_ms: millis(first),
    rounds_ms: records.map(({ answer }) => millis(answer)),
    token_ms: median(records.map(({ answer }) => millis(answer))),
    unmarked_ms: unmarked,
    expected_ms: plan.token_ms,
    overhead: plan.overhead,
    stages: plan.stages.map(({ bytes, kv_cache_bytes, first_block, end_block }) => ({ bytes, kv_cache_bytes, first_block, end_block })),
    p50_ms: median(intervals.map((interval) => interval.millis)),
    p95_ms: quantile(intervals.map((interval) => interval.millis), 0.95),
    kb_a_token: one.others ? bytesAToken(host.marks) / 1e3 : 0,
    first_token_ms: median(records.map(({ answer }) => answer.timings.first_token_ms)),
    prompts: asked,
    sealing_ms_a_token: sealing(records.at(-1)),
    kicks_a_token: host.kicks / answer.tokens.length,
    experts: plan.experts && { ...plan.experts, holders: undefined },
    drafts: records.at(-1).after.drafts,
    on_demand,
    adapter: device.adapter,
    direct_frames,
    ...spent,
    errors: room.errors(),
  };
}

const millis = ({ timings }) => timings.decode_ms / Math.max(1, timings.answer_tokens - 1);

/** What encoding, sealing and opening messages took on the host, prompt included. */
function sealing({ before, after, answer }) {
  return (after.sealing.ms - before.sealing.ms) / answer.tokens.length;
}

/** A prompt of about so many tokens, asked twice: the first time says how many tokens its words are, and compiles kernels. */
async function prompt(room, length, tokensAWord) {
  let words = Math.round(length / tokensAWord);
  let timings;
  for (const first of [length, length + 1]) {
    ({ timings } = await room.ask(text(Math.max(1, words), first), 2));
    words += Math.round((length - timings.prompt_tokens) * (words / timings.prompt_tokens));
  }
  const { prompt_tokens: tokens, reused_tokens: reused, first_token_ms } = timings;
  return { wanted: length, tokens, reused, first_token_ms, tokens_per_second: ((tokens - reused) * 1e3) / first_token_ms };
}

/** Where the time of the last round went. */
function anatomy(kind, record, plan) {
  if (kind === 'layers') {
    const traces = [record.host, ...record.holders].map(({ trace }) => trace);
    return { layers: hops(traces, millis(record.answer), plan.network_hops, record.answer.tokens.length - 1) };
  }
  if (kind !== 'spread') return {};
  const { trips: found, missed, clocks_apart } = trips(record);
  return { trip: { count: found.length, missed, clocks_apart, parts: summary(found) } };
}
