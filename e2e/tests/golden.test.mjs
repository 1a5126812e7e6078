// Every architecture in Q4_K and one in several weight types, in a real browser: one device, three stages, and for the
// models with experts all experts on two other devices. The engine's tests judge all weight types.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { Device } from '../harness/browser.mjs';
import { example } from '../harness/cargo.mjs';
import { build, serve } from '../harness/judge.mjs';

const data = resolve(import.meta.dirname, '../golden/data');
// Their kernels differ from others in one function, which the self-test covers; each costs half a minute.
const SKIPPED = ['F16', 'F32', 'Q4_0', 'Q6_K', 'Q8_0'].map((type) => `qwen3moe-${type}.json.gz`);
const names = (await readdir(data)).filter((name) => name.endsWith('.json.gz') && !SKIPPED.includes(name)).sort();
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

test('there are golden files for every architecture', () => {
  assert.ok(names.length >= 6, names.join(' '));
});

test('Chromium accepts every variant of every kernel', async () => {
  const variants = JSON.parse(execFileSync(example('variants'), { maxBuffer: 1 << 28 }));
  assert.ok(variants.length > 400, `only ${variants.length} variants`);
  const refused = await device.page.evaluate(async (variants) => {
    // Every software adapter has subgroups; without them the request fails, and so does the test.
    const gpu = await (await navigator.gpu.requestAdapter()).requestDevice({ requiredFeatures: ['subgroups'] });
    const errors = variants.map(async ({ name, source }) => {
      const { messages } = await gpu.createShaderModule({ code: source }).getCompilationInfo();
      return messages.filter(({ type }) => type === 'error').map(({ lineNum, message }) => `${name}: ${lineNum}: ${message}`);
    });
    const refused = (await Promise.all(errors)).flat();
    gpu.destroy();
    return refused;
  }, variants);
  assert.deepEqual(refused, []);
});

for (const name of names) {
  test(`${name} in the browser answers as llama.cpp`, async () => {
    const golden = gunzipSync(await readFile(join(data, name))).toString();
    const verdicts = JSON.parse(await device.page.evaluate((golden) => window.judge(golden), golden));
    for (const { name, counted, wrong, worst } of verdicts) {
      console.log(`${name}: ${counted} positions, worst logit ${worst.toExponential(1)}`);
      assert.deepEqual(wrong, [], `${name}: positions that differ (prompt, position, ours, theirs)`);
      assert.ok(counted >= 300, `${name}: only ${counted} positions count`);
    }
    const [one, three] = verdicts;
    assert.equal(three.bits, one.bits, 'three stages must answer bit for bit what one answers');
  });
}
