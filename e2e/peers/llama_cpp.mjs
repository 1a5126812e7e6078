// llama.cpp without a browser, by native/llama_cpp.c.
import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

import { median } from './report.mjs';

const run = promisify(execFile);

/** Its own warm-up comes before the answers that count. Fails if it found no GPU: then it computes on the CPU without a word. */
export async function measure({ binary, libraries }, { path, workloads, answers }) {
  if (!binary || !libraries) throw new Error('llama.cpp needs --llama-cpp PROGRAM and --llama-libs FOLDER (native/llama_cpp.c)');
  const env = { ...process.env, LD_LIBRARY_PATH: [process.env.LD_LIBRARY_PATH, libraries].filter(Boolean).join(':') };
  const results = [];
  let log = '';
  for (const { prompt, answer } of workloads) {
    const { stdout, stderr } = await run(binary, [prompt, answer, answers, libraries, path].map(String), { env, cwd: dirname(binary), maxBuffer: 1 << 26 });
    log = stderr;
    const runs = [...stdout.matchAll(/prefill ([\d.]+) tok\/s, decode ([\d.]+) tok\/s/g)].map(([, ...values]) => values.map(Number));
    results.push({ prompt, answer, prefill: median(runs.map(([prefill]) => prefill)), decode: median(runs.map(([, decode]) => decode)) });
  }
  if (!/Vulkan0|CUDA0/.test(log)) throw Object.assign(new Error('llama.cpp found no GPU'), { log });
  return { engine: 'llama.cpp', note: 'native, Vulkan; keys and values in f16', results };
}
