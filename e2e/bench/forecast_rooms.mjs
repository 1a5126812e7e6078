// The rooms of forecast.mjs, and the files that they answer from. Bytes are what a device lends.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const GB = 1e9;
const MB = 1e6;
export const BAR = '12%';

/** Options of `synthetic` that make a file; `built-in` has none. */
const files = {
  'llama-3.2-1b': ['--shape', 'llama-3.2-1b'],
  'qwen3-30b-a3b-4': ['--shape', 'qwen3-30b-a3b', '--blocks', '4'],
};

/**
 * `kind`, `host`, `others`, `lends`, `tabs`, `limit` as in experts/cases.mjs; `lends` may be a list, one each. `grows`: the room is measured
 * with each of these numbers of others. `direct`: again with direct connections. `alone`: also single tokens of the host alone.
 */
const large = {
  browsers: { model: 'llama-3.2-1b', kind: 'layers', host: 3 * GB, lends: 3 * GB, grows: [0, 1, 2, 3], direct: true, alone: true, limit: 260, what: (count) => `1B, ${browsers(count)}` },
  tabs: { model: 'llama-3.2-1b', kind: 'layers', host: 3 * GB, lends: 3 * GB, tabs: true, others: 2, limit: 90, what: (count) => `1B, ${count} tabs of one browser` },
  unequal: { model: 'llama-3.2-1b', kind: 'layers', host: 0.8 * GB, lends: [0.5 * GB, 0.4 * GB], others: 2, limit: 90, what: () => '1B, browsers that lend 800, 500 and 400 MB' },
  stages: { model: 'qwen3-30b-a3b-4', kind: 'layers', host: 3 * GB, lends: 3 * GB, others: 1, limit: 90, what: (count) => `4 blocks of 30B, layers on ${browsers(count)}` },
  'experts-4': { model: 'qwen3-30b-a3b-4', kind: 'spread', host: 2 * GB, lends: 0.9 * GB, others: 4, limit: 90, what: (count) => `4 blocks of 30B, experts on ${browsers(count - 1)} beside the host` },
  'experts-8': { model: 'qwen3-30b-a3b-4', kind: 'spread', host: 2 * GB, lends: 0.5 * GB, others: 8, limit: 110, what: (count) => `4 blocks of 30B, experts on ${browsers(count - 1)} beside the host` },
  'experts-tabs': { model: 'qwen3-30b-a3b-4', kind: 'spread', host: 2 * GB, lends: 0.9 * GB, tabs: true, others: 4, limit: 90, what: (count) => `4 blocks of 30B, experts on ${count - 1} tabs beside the host` },
};

/** The page's built-in model, for software adapters: it shows that everything works. */
const small = {
  browsers: { kind: 'layers', host: 200 * MB, lends: 200 * MB, grows: [0, 1], direct: true, alone: true, limit: 300, what: browsers },
  tabs: { kind: 'layers', host: 200 * MB, lends: 200 * MB, tabs: true, others: 1, limit: 240, what: (count) => `${count} tabs of one browser` },
  experts: { kind: 'spread', host: 200 * MB, lends: [200 * MB, 150 * MB], others: 2, limit: 240, what: (count) => `experts on ${browsers(count - 1)} beside the host` },
};

export const shapes = { large, small };

function browsers(count) {
  return count === 1 ? 'one browser' : `${count} browsers`;
}

/** The folder that holds a model's file, and nothing else. */
export function modelFolder(model, work) {
  if (!model) return join(root, 'public/models');
  const folder = join(resolve(work), model);
  const file = join(folder, 'experts.gguf');
  if (existsSync(file)) return folder;
  mkdirSync(folder, { recursive: true });
  const synthetic = process.env.POTLUCK_SYNTHETIC ?? join(root, 'target/release/examples/synthetic');
  execFileSync(synthetic, [...files[model], `${file}.part`], { stdio: ['ignore', 'inherit', 'inherit'] });
  renameSync(`${file}.part`, file);
  return folder;
}
