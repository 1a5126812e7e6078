// Where a token's time goes in a room, from the traces of its devices: how long each has a row, how much of that its GPU
// takes, and what is left for the ways between them.
const DECODED = /^from .*: forward (\S+) .*rows 1 Decode$/;
const PICKED = /^from .*: picked (\S+) /;
const SENT = /^to .*: (?:forward|picked) /;
const COMPUTED = /^computed .* in ([\d.]+) ms$/;

/** Rows of one device: from what arrived to what was sent on, and the GPU's part of it, in milliseconds. */
function rows(trace) {
  const found = [];
  let open = null;
  for (const { millis, kind, what } of trace) {
    if (kind === 'event' && (DECODED.test(what) || PICKED.test(what))) open = { start: millis, gpu: 0 };
    else if (!open) continue;
    else if (kind === 'event' && COMPUTED.test(what)) open.gpu += Number(COMPUTED.exec(what)[1]);
    else if (kind === 'action' && SENT.test(what)) {
      found.push({ stay: millis - open.start, gpu: open.gpu });
      open = null;
    }
  }
  return found;
}

/**
 * The last rows of every device: medians, and from the means (only they add up) what is left of a token's milliseconds for each
 * way between the devices.
 */
export function hops(traces, tokenMillis, messages, last = 100) {
  const devices = traces.map((trace) => {
    const mine = rows(trace).slice(-last);
    const stays = mine.map((row) => row.stay);
    const mean = stays.reduce((sum, stay) => sum + stay, 0) / Math.max(1, stays.length);
    return { rows: mine.length, stay: median(stays), mean, gpu: median(mine.map((row) => row.gpu)) };
  });
  const staying = devices.reduce((sum, device) => sum + device.mean, 0);
  return { devices, way: messages > 0 ? (tokenMillis - staying) / messages : 0 };
}

/** The middle of some numbers; NaN of none. */
export function median(values) {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted.length > 0 ? sorted[sorted.length >> 1] : NaN;
}
