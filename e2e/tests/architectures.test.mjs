// A third of all architectures in a real browser, chosen to differ in their blocks: on one device, and, as far as they can be split,
// in three stages and with experts on two other devices. Three of them also on a GPU with WebGPU's default limits and no optional
// feature. The engine's tests judge all architectures, on all their prompts.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { Device } from '../harness/browser.mjs';
import { build, serve } from '../harness/judge.mjs';
import { phone } from '../harness/small_device.mjs';

const recipes = resolve(import.meta.dirname, '../golden/architectures');
const names = ['deepseek2', 'exaone4', 'gemma2', 'gemma3', 'gemma4-moe', 'glm4', 'gpt-oss', 'granitehybrid', 'lfm2moe', 'llama4', 'phi3', 'qwen35', 'qwen35moe'];
// Attention in windows, experts, and recurrent state.
const SMALL = ['gemma3', 'gpt-oss', 'qwen35'];
let device;
let small;
let site;

/** A browser that has the page of the judge. */
async function judge(name, options) {
  const device = await Device.start(name, options);
  await device.page.goto(site.url);
  await device.page.getByText('Ready').waitFor();
  return device;
}

before(async () => {
  build();
  site = await serve();
  device = await judge('judge');
  small = await judge('small judge', phone);
});

after(async () => {
  await device?.stop();
  await small?.stop();
  await site?.stop();
});

async function answersAsLlamaCpp(page, name) {
  const recipe = gunzipSync(await readFile(resolve(recipes, `${name}.json.gz`))).toString();
  const { tolerance, metadata } = JSON.parse(recipe);
  const experts = metadata.some(([key]) => key.endsWith('.expert_count'));
  // Its blocks share keys and values.
  const stages = !metadata.some(([key, , value]) => key.endsWith('.attention.shared_kv_layers') && value > 0);
  const verdicts = JSON.parse(await page.evaluate((recipe) => window.judgeRecipe(recipe), recipe));
  assert.equal(verdicts.length, 1 + stages + experts);
  for (const { name, counted, wrong, worst } of verdicts) {
    console.log(`${name}: ${counted} positions, worst logit ${worst.toExponential(1)}`);
    assert.deepEqual(wrong, [], `${name}: positions that differ (prompt, position, ours, theirs)`);
    assert.ok(counted >= 60, `${name}: only ${counted} positions count`);
    assert.ok(worst < tolerance, `${name}: a logit is off by ${worst}`);
  }
}

for (const name of names) {
  test(`${name} in the browser answers as llama.cpp`, () => answersAsLlamaCpp(device.page, name));
}

for (const name of SMALL) {
  test(`${name} answers as llama.cpp on a GPU with default limits`, async () => {
    const buffers = await small.page.evaluate(async () => (await navigator.gpu.requestAdapter()).limits.maxStorageBuffersPerShaderStage);
    assert.equal(buffers, 8);
    await answersAsLlamaCpp(small.page, name);
  });
}
