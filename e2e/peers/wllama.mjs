// wllama: llama.cpp compiled to WebAssembly, with its WebGPU backend (LlamaWeb) or on the processor.
import { median } from './report.mjs';

/** A line of its log: "offloaded 13/13 layers to GPU". */
const OFFLOADED = /offloaded (\d+)\/(\d+) layers to GPU/;

/** For each prompt: one warm-up and `answers` that count, as medians. An error unless every layer ran on the GPU, if that was asked for. */
export function measure({ url }, { model, workloads, answers, gpu, ubatch }) {
  return async (page) => {
    await page.goto(`${url}/pages/wllama.html`);
    while (!(await page.evaluate(() => Boolean(window.measure)))) await page.waitForTimeout(100);
    const told = await page.evaluate((given) => window.measure(given), { url: `${url}/models/${model}.gguf`, workloads, answers, gpu, ubatch });
    const offloaded = told.log.map((line) => OFFLOADED.exec(line)).find(Boolean);
    const device = told.log.find((line) => /WebGPU.*(adapter|device)|adapter.*WebGPU|using device WebGPU/i.test(line));
    const note = [offloaded?.[0] ?? 'nothing offloaded', device?.trim()].filter(Boolean).join('; ');
    if (!told.ok) throw Object.assign(new Error(`wllama: ${told.error.split('\n')[0]}`), { log: told.log });
    const whole = offloaded && offloaded[1] === offloaded[2];
    if (gpu && !whole) throw Object.assign(new Error(`wllama did not run on the GPU: ${note}`), { log: told.log });
    return {
      engine: `wllama 3.8.1 (llama.cpp ${told.version})`,
      adapter: gpu ? 'WebGPU' : `processor, ${told.threads} threads`,
      loadMs: told.loadMs,
      note,
      log: told.log,
      answering: told.answering,
      results: told.results.map(({ prompt, answer, runs }) => {
        for (const { timings } of runs) {
          if (!timings) throw Object.assign(new Error('wllama gave no timings'), { log: told.log });
          if (timings.prompt_n !== prompt || timings.predicted_n !== answer) {
            throw new Error(`wllama read ${timings.prompt_n} of ${prompt} tokens and wrote ${timings.predicted_n} of ${answer}`);
          }
        }
        const middle = (value) => median(runs.map(value));
        return {
          prompt,
          answer,
          // Its own clock: what its worker's messages cost is left out, in its favour.
          prefill: middle(({ timings }) => timings.prompt_per_second),
          decode: middle(({ timings }) => timings.predicted_per_second),
          firstMs: middle(({ firstMs }) => firstMs),
          wallMs: middle(({ wallMs }) => wallMs),
        };
      }),
    };
  };
}
