// What experts.mjs prints, and the figures that it keeps.
const number = (value, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits) : '–');

/** Lines of text as a table of Markdown. */
function markdown(head, rows) {
  return [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

/** A line for each case. */
export function table(results, prompts) {
  const head = ['room', 'ms a token', 'unmarked', 'p50', 'p95', 'expected', 'trips', 'of engines', 'own', 'KB a token', 'first token', ...prompts.map((length) => `prompt ${length}: ms, tok/s`), 'up, s'];
  const row = (result) => {
    if (result.failed) return [result.what, `failed: ${result.failed}`, ...head.slice(2).map(() => '')];
    const { token_ms, unmarked_ms, p50_ms, p95_ms, expected_ms, experts, kb_a_token, first_token_ms, up_seconds } = result;
    const asked = prompts.map((length) => result.prompts.find(({ wanted }) => wanted === length));
    return [
      `${result.name}: ${result.what}`,
      ...[token_ms, unmarked_ms, p50_ms, p95_ms, expected_ms, experts?.trips_ms, experts?.trips_engine_ms, experts?.own_ms].map((value) => number(value)),
      number(kb_a_token, 0),
      number(first_token_ms, 0),
      ...asked.map((one) => (one ? `${number(one.first_token_ms, 0)}, ${number(one.tokens_per_second, 0)}` : '–')),
      number(up_seconds, 1),
    ];
  };
  return markdown(head, results.map(row));
}

/** How the room's plan says that experts are asked. */
const spreading = (experts) => (experts ? `; wire ${experts.wire}, hedging ${JSON.stringify(experts.hedging)}` : '');

/** Where the time of a case went. */
export function anatomyTable({ trip, layers, on_demand, token_ms, stages, holders, copies, experts, errors }) {
  const lines = [`${number(token_ms)} ms a token`];
  if (stages) lines[0] += `; stages: ${stages.map(({ first_block, end_block }) => `${first_block}–${end_block - 1}`).join(', ')}; ${holders} hold experts for others, copies of each: ${number(copies, 1)}${spreading(experts)}`;
  if (trip) {
    const rows = trip.parts.map(({ part, where, median, mean, p95 }) => [part, where, number(median, 3), number(mean, 3), number(p95, 3)]);
    lines.push(...markdown(['part of a trip', 'where', 'median ms', 'mean', 'p95'], rows));
    lines.push(`${trip.count} trips; left out: ${JSON.stringify(trip.missed)}; clocks apart by ${trip.clocks_apart.map((apart) => number(apart)).join(', ')} ms`);
  }
  if (layers) lines.push(`a token stays ${layers.devices.map(({ stay, gpu }) => `${number(stay)} (GPU ${number(gpu)})`).join(', ')} ms; each network hop ${number(layers.hop)} ms`);
  if (on_demand) lines.push(JSON.stringify(on_demand));
  if (errors.length > 0) lines.push(`${errors.length} errors on consoles: ${errors[0]}`);
  return lines;
}

/** Figures for the repository's results. */
export function figures(results, prompts) {
  return results.filter((result) => !result.failed).flatMap((result) => {
    const figure = (label, value, unit) => ({ label: `${result.what}: ${label}`, value, unit });
    const asked = prompts.flatMap((length) => result.prompts.filter(({ wanted }) => wanted === length));
    return [
      figure('decode', result.token_ms, 'ms a token'),
      figure('95% of tokens within', result.p95_ms, 'ms'),
      ...asked.map(({ wanted, first_token_ms }) => figure(`prompt of ${wanted} tokens`, first_token_ms, 'ms')),
    ].filter(({ value }) => Number.isFinite(value));
  });
}
