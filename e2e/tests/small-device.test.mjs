// A phone with a small GPU: WebGPU's default limits, no optional feature, a narrow window that is touched. It hosts and it helps, and
// every answer is the one that a computer gives.
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { phone } from '../harness/small_device.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, contribute, endedAnswers, host, isUp, isUpOn, status, until } from '../harness/table.mjs';

// A trained model: where other kernels round differently, its best token is still far ahead of the next one.
const models = resolve(import.meta.dirname, '../../public/models');
const MODEL = '24.5 MB';
const TEXT = 'Tell me a story about a table.';
const GREEDY = { temperature: 0, max_tokens: 40 };

let relay;
let computer;
let small;
let alone;
const step = story();

/** Opens a room in which everyone takes part. */
const open = (device) => host(device.page, relay, { model: MODEL, share: 'Everyone takes part', context: 512 });

const asks = async (device) => (await ask(device.page, TEXT, GREEDY)).text;

/** Pixels by which the page is wider than its window. */
const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

before(async () => {
  relay = await Relay.start({ models });
  computer = await Device.start('computer');
  small = await Device.start('phone', phone);
});

after(async () => {
  await small?.stop();
  await computer?.stop();
  await relay?.stop();
});

step('a computer gives the answer that all others are held against', async () => {
  const link = await open(computer);
  await until(computer.page, isUp);
  alone = await asks(computer);
  assert.ok(alone.length > 100, alone);

  await contribute(small.page, link);
  await until(computer.page, isUpOn(2));
});

step('the GPU of the phone has what WebGPU promises and no more, in the page and where it computes', async () => {
  const limits = await small.page.evaluate(async () => {
    const adapter = await navigator.gpu.requestAdapter();
    const { maxStorageBufferBindingSize, maxBufferSize, maxStorageBuffersPerShaderStage, maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupStorageSize } = adapter.limits;
    return { maxStorageBufferBindingSize, maxBufferSize, maxStorageBuffersPerShaderStage, maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupStorageSize };
  });
  assert.deepEqual(limits, {
    maxStorageBufferBindingSize: 128 << 20,
    maxBufferSize: 256 << 20,
    maxStorageBuffersPerShaderStage: 8,
    maxComputeInvocationsPerWorkgroup: 256,
    maxComputeWorkgroupStorageSize: 16 << 10,
  });
  const { device } = await until(small.page, ({ device }) => device.self_test.state !== 'NotRun' && device.self_test.state !== 'Running');
  const { max_binding, max_buffer, shader_f16, subgroups, self_test } = device;
  assert.deepEqual(
    { max_binding, max_buffer, shader_f16, subgroups, failed: self_test.failed },
    { max_binding: 128 << 20, max_buffer: 256 << 20, shader_f16: false, subgroups: false, failed: [] },
    JSON.stringify(device),
  );
  const { peers } = await status(computer.page);
  assert.deepEqual(peers.map(({ kind }) => kind).sort(), ['Computer', 'Phone']);
});

step('the phone lends its GPU to a computer, and both ask', async () => {
  assert.equal(await asks(computer), alone);
  assert.equal(await asks(small), alone);
});

step('the phone hosts and answers as the computer does', async () => {
  const link = await open(small);
  await until(small.page, isUp);
  assert.equal(await asks(small), alone);
  await contribute(computer.page, link);
  await until(small.page, isUpOn(2));
  assert.equal(await asks(small), alone);
  assert.equal(await asks(computer), alone);
});

step('a person touches the phone: the table, the message box and the settings', async () => {
  const { page } = small;
  const table = page.getByRole('button', { name: /devices? · ready/ });
  await table.tap();
  await page.getByText('Change how much this device lends').tap();
  await page.getByLabel('Memory this device lends, exactly').waitFor();
  assert.equal(await sideways(page), 0, 'the table');
  await table.tap();

  await page.getByRole('textbox', { name: 'Message' }).tap();
  await page.keyboard.type('Hello');
  await page.getByRole('button', { name: 'Send' }).tap();
  await endedAnswers(page).first().waitFor();
  assert.equal(await sideways(page), 0, 'the conversation');

  await page.getByRole('button', { name: 'Settings' }).tap();
  await page.getByRole('dialog').getByText(/software adapter/).first().waitFor();
  assert.equal(await sideways(page), 0, 'the settings');
});

step('no console shows an error', () => {
  assertQuiet(computer, small);
});
