// Examples of the crates, which make what tests need.
import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** Builds an example and returns its program: with the features of the whole workspace, so that all it needs is there after
 * `cargo test --workspace`. */
export function example(name) {
  const args = ['build', '--quiet', '--workspace', '--example', name];
  execFileSync('cargo', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  const target = resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
  return join(target, 'debug/examples', process.platform === 'win32' ? `${name}.exe` : name);
}
