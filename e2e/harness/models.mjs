// Synthetic models of the tests, made from seeds by the repository's own writer.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { example } from './cargo.mjs';

const root = resolve(import.meta.dirname, '../..');
export const folder = join(root, 'e2e/out/models');

const models = {
  // Less than 3 MB in four blocks, for everything that is not about size.
  tiny: ['--arch', 'qwen3', '--type', 'Q8_0', '--hidden', '256', '--blocks', '4', '--heads', '4', '--kv-heads', '2',
    '--head-dim', '64', '--intermediate', '512', '--vocabulary', '512', '--context', '2048', '--seed', '40'],
  // About 29 MB in six blocks: small enough for a software adapter, large enough to be cut in three.
  'six-blocks': ['--arch', 'qwen3', '--type', 'Q8_0', '--hidden', '512', '--blocks', '6', '--heads', '8', '--kv-heads', '4',
    '--head-dim', '64', '--intermediate', '2048', '--vocabulary', '512', '--context', '2048', '--seed', '41'],
  // Experts make up most of it, so that helpers too small for a block hold experts.
  'many-experts': ['--arch', 'qwen3moe', '--type', 'Q8_0', '--hidden', '256', '--blocks', '4', '--heads', '4', '--kv-heads', '2',
    '--head-dim', '64', '--intermediate', '512', '--experts', '16', '--used', '4', '--vocabulary', '512', '--context', '2048', '--seed', '42'],
  // Experts in floats: a copy with a seventh of the bits leaves room for a part of them.
  floats: ['--arch', 'qwen3moe', '--type', 'F32', '--hidden', '256', '--blocks', '4', '--heads', '4', '--kv-heads', '2',
    '--head-dim', '64', '--intermediate', '256', '--experts', '16', '--used', '4', '--vocabulary', '512', '--context', '2048', '--seed', '43'],
};

/** Makes the named models that are not there yet; returns their folder. */
export function make(...names) {
  mkdirSync(folder, { recursive: true });
  for (const name of names) {
    const path = join(folder, `${name}.gguf`);
    if (existsSync(path)) continue;
    // Another test file may be making the same model.
    const part = `${path}.${process.pid}.part`;
    execFileSync(example('synthetic'), [...models[name], part], { stdio: ['ignore', 'ignore', 'inherit'] });
    renameSync(part, path);
  }
  return folder;
}
