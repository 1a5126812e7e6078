// Medians over the runs, as one table.

export function median(values) {
  const sorted = values.filter(Number.isFinite).toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return null;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const digits = (value) => (value === null ? '–' : value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en'));
const mib = (bytes) => (bytes !== null ? `${Math.round(bytes / 2 ** 20).toLocaleString('en')} MiB` : '–');

/** Rows of one model: each engine at each prompt, beside the first engine. */
export function summarize(runs) {
  const rows = [];
  const models = [...new Set(runs.map((run) => run.model))];
  for (const model of models) {
    const peers = [...new Set(runs.filter((run) => run.model === model).map((run) => run.peer))];
    const keys = [...new Set(runs.filter((run) => run.model === model).flatMap((run) => run.results?.map(key) ?? []))];
    for (const workload of keys) {
      for (const peer of peers) {
        const mine = runs.filter((run) => run.model === model && run.peer === peer);
        const good = mine.filter((run) => run.results);
        const values = good.flatMap((run) => run.results.filter((result) => key(result) === workload));
        rows.push({
          model,
          peer,
          workload,
          runs: good.length,
          prefill: median(values.map((value) => value.prefill)),
          decode: median(values.map((value) => value.decode)),
          loadMs: median(good.map((run) => run.loadMs)),
          peakBytes: median(good.map((run) => run.peakBytes || NaN)),
          peakDeviceBytes: median(good.map((run) => run.peakDeviceBytes || NaN)),
          peakTotalBytes: median(good.map((run) => run.peakTotalBytes || NaN)),
          growthBytes: median(good.map((run) => run.growthBytes ?? NaN)),
          note: good[0]?.note ?? mine[0]?.error ?? '',
        });
      }
    }
  }
  return rows;
}

const key = ({ prompt, answer }) => `${prompt}/${answer}`;

export function markdown(rows, { date, args, more, answers, load }) {
  const flags = [`flags \`${args.join(' ')}\``, ...more].join(', ');
  const lines = [
    `Measured ${date}, load of the machine ${load}, ${flags}. Medians over fresh browsers, runs alternating, ${answers} counted in each.`,
    '',
    '| model | prompt/answer | engine | runs | prefill tok/s | decode tok/s | load s | peak PSS | GPU memory | both at once | growth | note |',
    '|---|---|---|---|---|---|---|---|---|---|---|---|',
  ];
  for (const row of rows) {
    const cells = [
      row.model, row.workload, row.peer, row.runs, digits(row.prefill), digits(row.decode),
      row.loadMs === null ? '–' : (row.loadMs / 1000).toFixed(1), mib(row.peakBytes), mib(row.peakDeviceBytes),
      mib(row.peakTotalBytes), mib(row.growthBytes),
      row.note.replaceAll('|', '/').replaceAll('\n', ' '),
    ];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return `${lines.join('\n')}\n`;
}

/** Potluck's headline figures with those of the others beside them, for `record`. */
export function figures(rows, memory) {
  const mebibytes = (bytes) => bytes / 2 ** 20;
  const measures = memory
    ? [['peak of processes and GPU', 'MiB', (row) => mebibytes(row.peakTotalBytes), '20% below the other engine'], ['growth', 'MiB', (row) => mebibytes(row.growthBytes)]]
    : [['decode', 'tok/s', (row) => row.decode, ['5 × the other engine', '1.25 × llama.cpp']], ['prefill', 'tok/s', (row) => row.prefill, ['4 × the other engine', '0.7 × llama.cpp']]];
  return rows
    .filter((row) => row.peer.startsWith('potluck') && row.runs > 0)
    .flatMap((mine) =>
      measures.map(([label, unit, value, target]) => {
        const others = rows.filter((row) => !row.peer.startsWith('potluck') && row.runs > 0 && row.model === mine.model && row.workload === mine.workload);
        const peer = others.map((row) => `${row.peer}: ${digits(value(row))}`).join('; ');
        const packed = mine.peer === 'potluck-packed' ? ', packed' : '';
        return { label: `${mine.model}, ${mine.workload}, ${label}${packed}`, value: value(mine), unit, target: peer ? goal(target, others) : undefined, peer: peer || undefined };
      }),
    );
}

/** A browser's engine is measured against others in browsers, or against llama.cpp without one. */
function goal(target, others) {
  const [browsers, native] = [target].flat();
  return native && others.every(({ peer }) => peer === 'llama.cpp') ? native : browsers;
}
