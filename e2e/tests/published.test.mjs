// A published model, SmolLM2-135M-Instruct as others quantized it: fetched by `cargo xtask models`, served by the relay, asked on the page.
// Its answer is llama.cpp's on the same weights in F32. The other prompts and models are judged natively (e2e/judge).
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { ask, host, isUp, until } from '../harness/table.mjs';

const root = resolve(import.meta.dirname, '../..');
const models = join(root, '.run/models');
// POTLUCK_PUBLISHED takes another one, which a software adapter needs minutes for.
const name = process.env.POTLUCK_PUBLISHED ?? 'smollm2-135m';
const published = JSON.parse(await readFile(join(root, `e2e/golden/real/${name}.json`), 'utf8'));
const skip = !existsSync(join(models, published.file.name)) && `${name} is out of reach: \`cargo xtask models ${name}\` fetches it`;
// The first with a whole answer, all of whose tokens are clear.
const prompt = published.prompts.find(({ ids, margin }) => ids.length === 28 && Math.min(...margin) > 4 * published.tolerance);

test(`${name} answers on the page as llama.cpp`, { skip }, async (t) => {
  const relay = await Relay.start({ models });
  const device = await Device.start('published');
  t.after(async () => {
    await device.stop();
    await relay.stop();
  });
  // The picker tells models apart by their sizes.
  await host(device.page, relay, { model: `${(published.file.bytes / 1e6).toPrecision(3)} MB`, context: 512 });
  await until(device.page, isUp);
  const { text } = await ask(device.page, prompt.text, { max_tokens: prompt.ids.length, temperature: 0 });
  assert.equal(text, prompt.answer);
});
