// Keeps the figures of a measurement where `cargo xtask bench-report` finds them.
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/**
 * Writes `bench/results/NAME.json`. Figures are `{ label, value, unit, target?, peer? }`; target and peer are text.
 *
 * Only a machine that has a name (`POTLUCK_MACHINE`) replaces the figures that the repository keeps; otherwise they go to
 * `bench/results/local/`, which git ignores and no report shows.
 */
export async function record(name, figures) {
  const machine = process.env.POTLUCK_MACHINE;
  const folder = join(root, 'bench/results', machine ? '' : 'local');
  const result = {
    name,
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    machine: machine ?? `${cpus()[0].model}, ${cpus().length} cores`,
    command: ['node', relative(root, process.argv[1]), ...process.argv.slice(2).map(withoutPlace)].join(' '),
    figures: figures.map((figure) => ({ ...figure, value: Number(figure.value.toPrecision(4)) })),
  };
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  await writeFile(path, `${JSON.stringify(result, null, 2)}\n`);
  console.log(`kept in ${relative(root, path)}`);
}

/** Folders are this machine's own. */
const withoutPlace = (argument) => (argument.startsWith('/') ? basename(argument) : argument);

/** The commit that is measured, marked if files differ from it. */
function commit() {
  const git = (...args) => execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', '.', ':!bench/results', ':!BENCHMARKS.md');
    return git('rev-parse', '--short', 'HEAD') + (changed ? '-modified' : '');
  } catch {
    return 'unknown';
  }
}
