// A third of all architectures in a real browser, chosen to differ in their blocks: on one device, and, as far as they can be split,
// in three stages and with experts on two other devices. The engine's tests judge all architectures, on all their prompts.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { Device } from '../harness/browser.mjs';
import { build, serve } from '../harness/judge.mjs';

const recipes = resolve(import.meta.dirname, '../golden/architectures');
const names = ['deepseek2', 'exaone4', 'gemma2', 'gemma3', 'gemma4-moe', 'glm4', 'gpt-oss', 'granitehybrid', 'lfm2moe', 'llama4', 'phi3', 'qwen35', 'qwen35moe'];
let device;
let site;

before(async () => {
  build();
  site = await serve();
  device = await Device.start('judge');
  await device.page.goto(site.url);
  await device.page.getByText('Ready').waitFor();
});

after(async () => {
  await device?.stop();
  await site?.stop();
});

for (const name of names) {
  test(`${name} in the browser answers as llama.cpp`, async () => {
    const recipe = gunzipSync(await readFile(resolve(recipes, `${name}.json.gz`))).toString();
    const { tolerance, metadata } = JSON.parse(recipe);
    const experts = metadata.some(([key]) => key.endsWith('.expert_count'));
    // Its blocks share keys and values.
    const stages = !metadata.some(([key, , value]) => key.endsWith('.attention.shared_kv_layers') && value > 0);
    const verdicts = JSON.parse(await device.page.evaluate((recipe) => window.judgeRecipe(recipe), recipe));
    assert.equal(verdicts.length, 1 + stages + experts);
    for (const { name, counted, wrong, worst } of verdicts) {
      console.log(`${name}: ${counted} positions, worst logit ${worst.toExponential(1)}`);
      assert.deepEqual(wrong, [], `${name}: positions that differ (prompt, position, ours, theirs)`);
      assert.ok(counted >= 60, `${name}: only ${counted} positions count`);
      assert.ok(worst < tolerance, `${name}: a logit is off by ${worst}`);
    }
  });
}
