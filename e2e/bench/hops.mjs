// Where a token's time goes in a room, from the traces of its devices: how long each device has the token, how much of that its
// GPU takes, and what is left for the network hops between them.
const DECODED = /^from .*: forward (\S+) .*(?:rows|tokens) 1 Decode$/;
const SAMPLED = /^from .*: (?:picked|sampled) (\S+) /;
const SENT = /^to .*: (?:forward|picked|sampled) /;
const COMPUTED = /^computed .* in ([\d.]+) ms$/;

/** One device's tokens: when each arrived, how long until it was sent on, and the GPU's part of that, in milliseconds. */
function visits(trace) {
  const found = [];
  let open = null;
  for (const { millis, kind, what } of trace) {
    if (kind === 'event' && (DECODED.test(what) || SAMPLED.test(what))) open = { start: millis, gpu: 0 };
    else if (!open) continue;
    else if (kind === 'event' && COMPUTED.test(what)) open.gpu += Number(COMPUTED.exec(what)[1]);
    else if (kind === 'action' && SENT.test(what)) {
      found.push({ start: open.start, stay: millis - open.start, gpu: open.gpu });
      open = null;
    }
  }
  return found;
}

/**
 * The last tokens of every device: medians, and from the means (only they add up) what is left of a token's milliseconds for
 * each network hop.
 */
export function hops(traces, tokenMillis, networkHops, last = 100) {
  const devices = traces.map((trace) => {
    const mine = visits(trace).slice(-last);
    const stays = mine.map((visit) => visit.stay);
    const mean = stays.reduce((sum, stay) => sum + stay, 0) / Math.max(1, stays.length);
    return { tokens: mine.length, stay: median(stays), mean, gpu: median(mine.map((visit) => visit.gpu)) };
  });
  const staying = devices.reduce((sum, device) => sum + device.mean, 0);
  return { devices, hop: networkHops > 0 ? (tokenMillis - staying) / networkHops : 0 };
}

/** Milliseconds between the last tokens, as the first device of a token's way saw them arrive. */
export function intervals(trace, last = 100) {
  const starts = visits(trace).slice(-last).map((visit) => visit.start);
  return starts.slice(1).map((start, index) => start - starts[index]);
}

/** The middle of some numbers; NaN of none. */
export function median(values) {
  return quantile(values, 0.5);
}

/** The number that this share of some numbers is below; NaN of none. */
export function quantile(values, share) {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted.length > 0 ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : NaN;
}
