// What is measured: rooms, and the files that they answer from. Bytes are what a device lends.
const GB = 1e9;
const MB = 1e6;

/**
 * Cases by their names. `kind`: `alone`, `spread` (its experts), `demand` (one tab with memory for a part of its experts), `layers` (blocks
 * on several devices) or `bare` (bare.mjs). `host`, `lends`: what the host lends, and each of the others. `tabs`: of the host's browser
 * instead of browsers with profiles of their own. `limit`: after so many seconds a case is given up.
 */
const large = {
  resident: { blocks: 4, kind: 'alone', host: 3 * GB, limit: 70 },
  tabs: { blocks: 4, kind: 'spread', host: 2 * GB, others: 4, lends: 0.9 * GB, tabs: true, limit: 90 },
  'browsers-4': { blocks: 4, kind: 'spread', host: 2 * GB, others: 4, lends: 0.9 * GB, limit: 90 },
  'browsers-8': { blocks: 4, kind: 'spread', host: 2 * GB, others: 8, lends: 0.5 * GB, limit: 110 },
  demand: { blocks: 4, kind: 'demand', host: 1 * GB, limit: 110 },
  whole: { blocks: 48, kind: 'spread', host: 4 * GB, others: 8, lends: 2.5 * GB, limit: 300 },
  'bare-4': { blocks: 4, kind: 'bare', others: 4, limit: 60 },
  'bare-8': { blocks: 4, kind: 'bare', others: 8, limit: 60 },
  'layers-4': { blocks: 48, kind: 'layers', host: 6 * GB, others: 3, lends: 6 * GB, limit: 240 },
};

/** The page's built-in model, for software adapters: it shows that everything works, and no figure that matters. */
const small = {
  resident: { kind: 'alone', host: 200 * MB, limit: 120 },
  tabs: { kind: 'spread', host: 200 * MB, others: 2, lends: 200 * MB, tabs: true, limit: 240 },
  'browsers-2': { kind: 'spread', host: 200 * MB, others: 2, lends: 200 * MB, limit: 240 },
  demand: { kind: 'demand', host: 40 * MB, limit: 240 },
  'bare-2': { blocks: 6, kind: 'bare', others: 2, limit: 120 },
  'layers-2': { kind: 'layers', host: 200 * MB, others: 1, lends: 200 * MB, limit: 240 },
};

/** Shapes: their cases, the options of `synthetic` that make their file, and how much is asked. */
export const shapes = {
  'qwen3-30b-a3b': {
    cases: large,
    usual: ['resident', 'tabs', 'browsers-4', 'browsers-8', 'demand'],
    context: 2048,
    prompts: '129,513',
    file: (blocks) => ['--shape', 'qwen3-30b-a3b', '--blocks', String(blocks)],
  },
  small: { cases: small, usual: ['resident', 'tabs', 'browsers-2', 'demand'], context: 1024, prompts: '33,97' },
};

/** Says what a case is, for the table; what the host chose only where that is not the usual. */
export function described({ kind, blocks, host, others, lends, tabs }, { wire, copies, hedging }) {
  const size = (bytes) => (bytes < GB ? `${bytes / MB} MB` : `${bytes / GB} GB`);
  const where = `${others} ${tabs ? 'tabs' : 'browsers'} of ${size(lends ?? 0)}`;
  const what = {
    alone: 'one tab, everything resident',
    spread: `experts on ${where}, host ${size(host)}`,
    demand: `one tab of ${size(host)}, experts on demand`,
    layers: `blocks on a host and ${where}`,
    bare: `bare pages in ${(others ?? 0) + 1} browsers`,
  }[kind];
  const numbers = wire === 'f32' ? '' : `, numbers as ${wire}`;
  const asked = `${copies ? `, copies ${copies}` : ''}${hedging ? `, hedging ${hedging}` : ''}`;
  const chosen = { spread: numbers + asked, bare: numbers }[kind] ?? '';
  return (blocks ? `${blocks} blocks: ${what}` : what) + chosen;
}
