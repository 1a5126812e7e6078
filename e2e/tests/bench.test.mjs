// The bench: a short workload on a tiny model is measured and counted, it can be stopped, and a wrong file is told in a sentence.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';

let relay;
let device;
let page;
let folder;

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  device = await Device.start('bench');
  page = device.page;
  folder = await mkdtemp(join(tmpdir(), 'potluck-bench-'));
});

after(async () => {
  await device?.stop();
  await relay?.stop();
  await rm(folder, { recursive: true, force: true });
});

const option = (name) => page.getByRole('checkbox', { name });

const model = () => page.getByRole('combobox', { name: /^Model/ });

/** The bench with one workload of one's own. */
async function open({ prompt, answer, runs }) {
  await page.goto(`${relay.url}/bench`);
  await model().selectOption('relay:tiny');
  for (const preset of [/^Chat/, /^Summarize/]) await option(preset).uncheck();
  await page.getByLabel('Tokens of the prompt').fill(String(prompt));
  await page.getByLabel('Tokens of the answer').fill(String(answer));
  await page.getByLabel('Measured runs').fill(String(runs));
  await page.getByLabel('Measured runs').press('Tab');
}

async function result() {
  for (;;) {
    const told = await page.evaluate(() => window.benchResult ?? null);
    if (told) return told;
    const alert = page.getByRole('alert');
    if ((await alert.count()) > 0) throw new Error(await alert.first().textContent());
    await page.waitForTimeout(100);
  }
}

test('a workload is measured and every token counted', { timeout: 600_000 }, async () => {
  await open({ prompt: 16, answer: 8, runs: 2 });
  await page.getByRole('button', { name: 'Measure' }).click();
  const report = await result();

  assert.match(report.device.adapter, /swiftshader/i);
  assert.match(report.device.browser, /Chrome\/\d+/);
  assert.equal(report.device.software, true);
  assert.ok(report.device.streaming > 1e6, `${report.device.streaming} bytes a second`);
  assert.ok(report.device.limits.length > 3 && report.device.tuned.length > 3);
  assert.equal(report.model.quantization, 'Q8_0');
  assert.ok(report.load.weights > 2e6 && report.load.allocated > report.load.weights);

  const { rates } = report.load;
  // What is loaded again is every byte of the file's tensors.
  assert.ok(rates.bytes > 2e6 && rates.bytes <= report.load.weights, JSON.stringify(report.load));
  assert.ok(rates.load > 0 && rates.read > 0 && rates.upload > 0, JSON.stringify(rates));
  assert.ok(Math.abs(rates.share - rates.load / Math.min(rates.read, rates.upload)) < 1e-6, JSON.stringify(rates));

  assert.equal(report.workloads.length, 1);
  const [workload] = report.workloads;
  assert.deepEqual([workload.depth, workload.prompt, workload.answer], [0, 16, 8]);
  assert.deepEqual(workload.runs.map((run) => run.tokens), [8, 8]);
  // Both rates follow from the runs: two values, so the median is their mean.
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const close = (got, expected, what) => assert.ok(Math.abs(got / expected - 1) < 1e-6, `${what}: ${got}, not ${expected}`);
  close(workload.prefill, mean(workload.runs.map((run) => (16 * 1000) / run.first_token)), 'prefill');
  close(workload.decode, mean(workload.runs.map((run) => (7 * 1000) / run.decode)), 'decode');
  close(workload.streaming_share, (workload.decode * workload.token_bytes) / report.device.streaming, 'share');

  for (const phase of ['decode', 'prefill']) {
    const kernels = report.kernels.find((one) => one.phase === phase);
    assert.ok(kernels, phase);
    assert.ok(kernels.classes.some((one) => one.class.startsWith('attention')), JSON.stringify(kernels.classes));
    // The time between kernels is a line of its own and no dispatch.
    const counted = (one) => (one.class === 'between kernels' ? one.dispatches === 0 : one.dispatches > 0);
    assert.ok(kernels.classes.every((one) => one.millis >= 0 && counted(one)), JSON.stringify(kernels.classes));
    const kernelsOnly = kernels.classes.filter((one) => one.class !== 'between kernels');
    close(kernels.millis, kernelsOnly.reduce((sum, one) => sum + one.millis, 0), phase);
  }

  const table = page.getByRole('table').first();
  await table.getByRole('rowheader', { name: '16 / 8' }).waitFor();
  await page.getByText('Writing an answer, tokens per second').waitFor();
  await page.getByText('Device and limits').click();
  await page.getByText(/, \d+% of what the slower step reaches alone: reading the file .+, copying to the GPU .+\./).waitFor();
  assert.ok(report.method.some((sentence) => /first run does not count/.test(sentence)));
});

test('it stops when asked to', { timeout: 600_000 }, async () => {
  await open({ prompt: 25, answer: 1024, runs: 50 });
  await page.getByRole('button', { name: 'Measure' }).click();
  await page.getByText(/warming up|run 1 of 50/).first().waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText(/^Stopped/).waitFor();
  await page.getByRole('button', { name: 'Measure' }).waitFor();
  assert.equal(await page.evaluate(() => window.benchResult ?? null), null);
});

test('a wrong file is told in one sentence', { timeout: 600_000 }, async () => {
  const path = join(folder, 'letter.gguf');
  await writeFile(path, 'Dear table, this is not a model.'.repeat(100));
  await open({ prompt: 4, answer: 2, runs: 1 });
  await model().selectOption('file:');
  await page.getByLabel('GGUF file').setInputFiles(path);
  await page.getByRole('button', { name: 'Measure' }).click();
  const sentence = await page.getByRole('alert').first().textContent();
  assert.match(sentence, /GGUF/);
  assert.match(sentence, /^[^.]+(\.[a-z]+[^.]*)*\.$/, `one sentence: ${sentence}`);
});
