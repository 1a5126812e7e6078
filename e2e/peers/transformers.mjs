// Transformers.js: ONNX Runtime Web on WebGPU, or on the processor. It reads ONNX: see `export_onnx.py`.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { median } from './report.mjs';

const VERSION = '4.3.1';

/** Checks that a model was exported; the error says how to do it. */
export async function exported(folder, model) {
  await readFile(join(folder, model, 'config.json')).catch(() => {
    throw new Error(`no ONNX export of ${model} in ${folder}: e2e/peers/export_onnx.py makes one`);
  });
}

/** For each prompt: one warm-up and `answers` that count, as medians. */
export function measure({ url }, { model, workloads, answers, gpu, dtype }) {
  return async (page) => {
    await page.goto(`${url}/pages/transformers.html`);
    while (!(await page.evaluate(() => Boolean(window.measure)))) await page.waitForTimeout(100);
    const device = gpu ? 'webgpu' : 'wasm';
    const told = await page.evaluate((given) => window.measure(given), { name: model, dtype, workloads, answers, device });
    return {
      engine: `Transformers.js ${VERSION}`,
      adapter: gpu ? 'WebGPU' : `processor, ${told.threads ?? 'its own number of'} threads`,
      loadMs: told.loadMs,
      note: `${device}, weights ${dtype}`,
      answering: told.answering,
      results: told.results.map(({ prompt, answer, runs }) => {
        const wrong = runs.find(({ tokens }) => tokens !== answer);
        if (wrong) throw new Error(`${wrong.tokens} tokens came instead of ${answer}`);
        const middle = (value) => median(runs.map(value));
        return {
          prompt,
          answer,
          prefill: middle(({ firstMs }) => (1000 * prompt) / firstMs),
          decode: middle(({ decodeMs }) => (1000 * (answer - 1)) / decodeMs),
          firstMs: middle(({ firstMs }) => firstMs),
        };
      }),
    };
  };
}
