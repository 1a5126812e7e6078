// The parts of one trip to the holders of a block's experts, from the recordings (`potluck.trace()`) and marks (`marks.mjs`) of the host and
// its holders. Of several holders the one counts that answered last: the others were waited for beside it.
import { median, quantile } from '../hops.mjs';

/** The parts in their order: what a trip is made of, and where that happens. */
export const PARTS = [
  ['router: result → event', 'host, its worker'],
  ['route, encode, seal', 'host, its worker'],
  ['out: tab → relay → tab', 'two network processes, relay'],
  ['open → event', 'holder, its worker'],
  ['encode, submit', 'holder, its worker'],
  ['experts: submit → mapped', 'holder, GPU process'],
  ['experts: result → event', 'holder, its worker'],
  ['encode, seal', 'holder, its worker'],
  ['back: tab → relay → tab', 'two network processes, relay'],
  ['open → event', 'host, its worker'],
  ['upload, encode, submit', 'host, its worker'],
  ['next router: submit → mapped', 'host, GPU process'],
];

const CALL = /^to .*: expert call (\d+) block (\d+) rows (\d+)$/;
const CALLED = /^from .*: expert call (\d+) block \d+ rows \d+$/;
const ANSWER = /^to .*: expert result (\d+) /;
const ANSWERED = /^from .*: expert result (\d+) /;
const EXPERTS = /^experts of block (\d+) in ([\d.]+) ms/;
/** A message's share of the vector that it carries at least: sealed and encoded it is longer. */
const SLACK = 0.95;

/** One device's recording and marks on a clock that all devices of the room share, in milliseconds. */
function timed({ trace, origin, marks }, base) {
  const at = (millis) => origin - base + millis;
  return {
    lines: trace.map(({ millis, kind, what }) => ({ at: at(millis), kind, what })),
    marks: marks.map((mark) => ({ ...mark, at: at(mark.at) })),
  };
}

const isOut = ({ kind }) => kind === 'sent' || kind === 'posted';
const isIn = ({ kind }) => kind === 'came' || kind === 'got';

/** The last of sorted items that is not later; nothing if there is none. */
function last(items, at) {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return items[low - 1];
}

/** The first of sorted items that is not earlier. */
const next = (items, at) => items.find((item) => item.at >= at);

/**
 * When the message of each event arrived, by the event. Messages are handled in their order, each soon after it came: from the end, each
 * event gets the last message before it that no later event got. `least` is the bytes of a message with a vector.
 */
function arrivals(events, marks, least) {
  const came = marks.filter((mark) => isIn(mark) && mark.value >= least);
  const found = new Map();
  let index = came.length - 1;
  for (const event of events.toReversed()) {
    while (index >= 0 && came[index].at > event.at) index -= 1;
    if (index < 0) break;
    found.set(event, came[index--]);
  }
  return found;
}

/** The lines that match, with the number in it. */
function numbered(lines, kind, pattern) {
  const found = lines.filter((line) => line.kind === kind && pattern.test(line.what));
  return found.map((line) => ({ ...line, groups: pattern.exec(line.what).slice(1).map(Number), line }));
}

/** What a device needs to know of its readbacks. */
function readbacks(marks) {
  const asked = new Map(marks.filter(({ kind }) => kind === 'map').map((mark) => [mark.value, mark]));
  const mapped = marks.filter(({ kind }) => kind === 'mapped');
  const answers = new Map(mapped.map((mark) => [mark.value, mark]));
  return {
    /** The result that was here last at a time, as it was asked for and as it came. */
    before: (at) => {
      const came = last(mapped, at);
      return came && { asked: asked.get(came.value), came };
    },
    /** The next one that is asked for. */
    after: (at) => {
      const mark = marks.find((mark) => mark.kind === 'map' && mark.at >= at);
      return mark && { asked: mark, came: answers.get(mark.value) };
    },
  };
}

/** Bytes of the shortest message that carries a vector: a call, right after its event. Calls of one event reach the relay together. */
function callBytes(host, calls) {
  const out = host.marks.filter(isOut);
  const size = (call) => {
    const message = next(out, call.at);
    const together = message?.kind === 'sent' ? calls.filter(({ at }) => at === call.at).length : 1;
    return message ? message.value / together : 0;
  };
  const sizes = calls.slice(0, 200).map(size).filter((bytes) => bytes > 0);
  return SLACK * quantile(sizes, 0.1);
}

/** A holder's part of all calls, by their numbers. */
function answersOf(holder, least) {
  const called = numbered(holder.lines, 'event', CALLED);
  const answers = new Map(numbered(holder.lines, 'action', ANSWER).map((answer) => [answer.groups[0], answer]));
  const came = arrivals(called, holder.marks, least);
  const reads = readbacks(holder.marks);
  const out = holder.marks.filter((mark) => isOut(mark) && mark.value >= least);
  const found = new Map();
  for (const call of called) {
    const answer = answers.get(call.groups[0]);
    const read = answer && reads.before(answer.at);
    const sent = answer && next(out, answer.at);
    if (came.has(call) && read?.asked && read.asked.at >= call.at && sent) {
      found.set(call.groups[0], { came: came.get(call).at, called: call.at, asked: read.asked.at, mapped: read.came.at, computed: answer.at, sent: sent.at });
    }
  }
  return found;
}

/**
 * All trips of one token a time whose every part is known: `[{ block, parts: [milliseconds, in the order of PARTS] }]`. The clocks of
 * browsers may differ by a fraction of a millisecond: ways out and back are said to take as long at least, and what they were apart is told.
 */
export function trips({ host, holders }) {
  const base = host.origin;
  const own = timed(host, base);
  const calls = numbered(own.lines, 'action', CALL);
  const least = callBytes(own, calls);
  const results = numbered(own.lines, 'event', ANSWERED);
  const came = arrivals(results, own.marks, least);
  const resultOf = new Map(results.map((result) => [result.groups[0], result]));
  const others = holders.map((holder) => answersOf(timed(holder, base), least));
  const reads = readbacks(own.marks);
  const out = own.marks.filter((mark) => isOut(mark) && mark.value >= least);
  // The recording goes further back than the marks.
  const whole = numbered(own.lines, 'note', EXPERTS).filter(({ at, groups }) => at - groups[1] > own.marks[0]?.at);

  const found = [];
  const missed = { own: 0, several: 0, unknown: 0 };
  for (const block of whole) {
    const [number, waited] = block.groups;
    const mine = calls.filter((call) => call.groups[1] === number && call.at <= block.at && Math.abs(block.at - call.at - waited) < 0.02);
    const lastCall = mine.find((call) => Math.abs((resultOf.get(call.groups[0])?.at ?? NaN) - block.at) < 1e-6);
    if (!lastCall) missed[mine.length > 0 ? 'own' : 'unknown'] += 1;
    else if (lastCall.groups[2] !== 1) missed.several += 1;
    else {
      const id = lastCall.groups[0];
      const device = others.findIndex((answers) => answers.has(id));
      const there = others[device]?.get(id);
      const routed = reads.before(lastCall.at);
      // Those to the relay go together; those to tabs one after the other, in the order of their calls.
      const leaving = out.filter((mark) => mark.at >= lastCall.at && mark.at <= block.at);
      const sent = leaving[leaving[0]?.kind === 'sent' ? 0 : mine.indexOf(lastCall)];
      const back = came.get(resultOf.get(id));
      const after = reads.after(block.at);
      if (there && routed && sent && back && after?.came) found.push({ block: number, device, id, routed, call: lastCall, sent, there, back, end: block, after });
      else missed.unknown += 1;
    }
  }
  const shift = others.map((_, device) => {
    const mine = found.filter((trip) => trip.device === device);
    const least = (of) => Math.min(...mine.map(of));
    return mine.length > 0 ? (least((trip) => trip.there.came - trip.sent.at) - least((trip) => trip.back.at - trip.there.sent)) / 2 : 0;
  });
  const parts = ({ device, routed, call, sent, there, back, end, after }) => [
    call.at - routed.came.at,
    sent.at - call.at,
    there.came - sent.at - shift[device],
    there.called - there.came,
    there.asked - there.called,
    there.mapped - there.asked,
    there.computed - there.mapped,
    there.sent - there.computed,
    back.at - there.sent + shift[device],
    end.at - back.at,
    after.asked.at - end.at,
    after.came.at - after.asked.at,
  ];
  return { trips: found.map((trip) => ({ block: trip.block, parts: parts(trip) })), missed, clocks_apart: shift };
}

/** A line for each part: its middle, mean and 95th percentile in milliseconds, over all trips. Only means add up. */
export function summary(trips) {
  const row = (values, part, where) => ({
    part,
    where,
    median: median(values),
    mean: values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length),
    p95: quantile(values, 0.95),
  });
  const rows = PARTS.map(([part, where], index) => row(trips.map((trip) => trip.parts[index]), part, where));
  const sums = trips.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0));
  return [...rows, row(sums, 'a block, router to router', '')];
}

/** Milliseconds between the words of one answer, as they went to the page; words that came together share their time. */
export function betweenWords(marks) {
  const words = marks.filter(({ kind }) => kind === 'words');
  return words.slice(1).map(({ at, value }, index) => ({ millis: (at - words[index].at) / Math.max(1, value), tokens: value }));
}

/** Bytes that a device sent and received for each token after the first, whose prompt had messages of its own. */
export function bytesAToken(marks) {
  const words = marks.filter(({ kind }) => kind === 'words');
  const [first, last] = [words[0]?.at, words.at(-1)?.at];
  const tokens = words.slice(1).reduce((sum, { value }) => sum + value, 0);
  const between = marks.filter((mark) => (isOut(mark) || isIn(mark)) && mark.at > first && mark.at <= last);
  return tokens > 0 ? between.reduce((sum, { value }) => sum + value, 0) / tokens : 0;
}
