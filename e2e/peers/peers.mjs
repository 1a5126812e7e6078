// Potluck beside other engines that run in a browser: the same files, the same prompts, the same Chromium. See README.md.
import { readdir, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { record } from '../bench/results.mjs';
import { SOFTWARE, inFreshBrowser } from './browser.mjs';
import * as llamaCpp from './llama_cpp.mjs';
import * as potluck from './potluck.mjs';
import { figures, markdown, summarize } from './report.mjs';
import { serve } from './server.mjs';
import * as transformers from './transformers.mjs';
import * as wllama from './wllama.mjs';

const root = resolve(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: {
    chromium: { type: 'string', default: process.env.CHROMIUM ?? '/usr/bin/chromium' },
    flags: { type: 'string', default: process.env.CHROMIUM_GPU_ARGS ?? '' },
    'wllama-flags': { type: 'string', default: process.env.CHROMIUM_GPU_ARGS_F16 },
    page: { type: 'string', default: join(root, 'dist') },
    relay: { type: 'string', default: process.env.POTLUCK_RELAY ?? join(root, 'target/release/potluck-relay') },
    models: { type: 'string' },
    model: { type: 'string', multiple: true },
    onnx: { type: 'string' },
    dtype: { type: 'string', default: 'q4' },
    'llama-cpp': { type: 'string' },
    'llama-libs': { type: 'string' },
    workloads: { type: 'string', default: '512/128' },
    peers: { type: 'string', default: 'potluck,wllama,wllama-cpu' },
    runs: { type: 'string', default: '5' },
    ubatch: { type: 'string' },
    answers: { type: 'string', default: '1' },
    kernels: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    patience: { type: 'string', default: '1800' },
    out: { type: 'string', default: 'peers' },
  },
});
if (!values.models) {
  console.error('Name the folder with the models: --models DIR');
  process.exit(2);
}

const workloads = values.workloads.split(',').map((text) => {
  const [prompt, answer] = text.split('/').map(Number);
  if (!(prompt > 0) || !(answer > 1)) throw new Error(`"${text}" is not a workload like 512/128`);
  return { prompt, answer };
});
const found = (await readdir(values.models)).filter((name) => name.endsWith('.gguf')).map((name) => basename(name, '.gguf'));
const models = values.model ?? found.toSorted();
const missing = models.filter((model) => !found.includes(model));
if (missing.length > 0) throw new Error(`no ${missing.join(', ')} in ${values.models}`);

const peers = values.peers.split(',');
// Without these files their pages would wait for ever.
const needed = { wllama: '@wllama/wllama/esm', transformers: '@huggingface/transformers/dist' };
for (const [name, folder] of Object.entries(needed)) {
  if (!peers.some((peer) => peer.startsWith(name))) continue;
  await readdir(join(import.meta.dirname, 'node_modules', folder)).catch(() => {
    throw new Error(`${name} is missing: npm ci --ignore-scripts --prefix e2e/peers`);
  });
}

const ubatch = values.ubatch ? Number(values.ubatch) : undefined;
const answers = Number(values.answers);
const words = (flags) => flags.split(' ').filter(Boolean);
const args = values.flags ? words(values.flags) : SOFTWARE;
const flagsOf = (peer) => (peer === 'wllama' && values['wllama-flags'] ? words(values['wllama-flags']) : args);
const browser = { executablePath: values.chromium, memory: values.memory, patience: 1000 * Number(values.patience) };
const relay = await potluck.start({ relay: values.relay, page: values.page, models: values.models });
const files = await serve({
  pages: join(import.meta.dirname, 'pages'),
  wllama: join(import.meta.dirname, 'node_modules/@wllama/wllama/esm'),
  transformers: join(import.meta.dirname, 'node_modules/@huggingface/transformers/dist'),
  ort: join(import.meta.dirname, 'node_modules/onnxruntime-web/dist'),
  onnx: resolve(values.onnx ?? values.models),
  models: resolve(values.models),
});
const engines = {
  potluck: (model) => potluck.measure(relay, { model, workloads, answers, kernels: values.kernels, arithmetic: 'Exact' }),
  'potluck-packed': (model) => potluck.measure(relay, { model, workloads, answers, kernels: values.kernels, arithmetic: 'Packed' }),
  wllama: (model) => wllama.measure(files, { model, workloads, answers, gpu: true, ubatch }),
  'wllama-cpu': (model) => wllama.measure(files, { model, workloads, answers, gpu: false, ubatch }),
  'transformers.js': (model) => transformers.measure(files, { model, workloads, answers, gpu: true, dtype: values.dtype }),
  'transformers.js-cpu': (model) => transformers.measure(files, { model, workloads, answers, gpu: false, dtype: values.dtype }),
};
// Without a browser.
const native = {
  'llama.cpp': (model) => llamaCpp.measure({ binary: values['llama-cpp'], libraries: values['llama-libs'] }, { path: join(resolve(values.models), `${model}.gguf`), workloads, answers }),
};
const unknown = peers.filter((peer) => !(peer in engines) && !(peer in native));
if (unknown.length > 0) throw new Error(`unknown peer ${unknown.join(', ')}; known are ${[...Object.keys(engines), ...Object.keys(native)].join(', ')}`);

const runs = [];
const more = peers.flatMap((peer) => flagsOf(peer).filter((flag) => !args.includes(flag)).map((flag) => `${peer} also \`${flag}\``));
const about = { date: new Date().toISOString().slice(0, 10), args, more, answers, load: loadavg()[0].toFixed(1) };
try {
  for (const model of models) {
    if (peers.some((peer) => peer.startsWith('transformers.js'))) await transformers.exported(resolve(values.onnx ?? values.models), model);
    await relay.ready(model);
    for (let number = 1; number <= Number(values.runs); number++) {
      for (const peer of peers) {
        const load = loadavg()[0];
        const measured = native[peer]?.(model) ?? inFreshBrowser({ ...browser, args: flagsOf(peer) }, engines[peer](model));
        const run = await measured.catch((error) => ({ error: String(error.message ?? error), log: error.log }));
        runs.push({ model, peer, number, load, ...run });
        const shown = run.error ?? run.results.map((r) => `${r.prompt}/${r.answer}: ${r.prefill.toFixed(1)} / ${r.decode.toFixed(2)} tok/s`).join(', ');
        console.log(`${model} ${peer} ${number}: ${shown}`);
        if (run.peakProcesses) console.log(`  at the peak, after ${run.peakAt.toFixed(1)} s: ${processes(run)}`);
        // After every run, so that a machine that disappears leaves its results so far.
        await write();
      }
    }
  }
} finally {
  files.stop();
  await relay.stop();
}
console.log(`\n${markdown(summarize(runs), about)}`);
const kept = values.memory ? 'memory' : peers.includes('llama.cpp') ? 'browser-llama-cpp' : values.flags ? 'browser-peers' : 'software-adapter';
await record(kept, figures(summarize(runs), values.memory));

/** What each process took at the peak, in MiB, and the GPU's memory. */
function processes({ peakProcesses, peakTotalBytes }) {
  const all = peakProcesses.reduce((sum, [, size]) => sum + size, 0);
  const parts = [...peakProcesses, ['GPU memory', peakTotalBytes - all]];
  return parts.map(([kind, size]) => `${kind} ${Math.round(size / 2 ** 20)}`).join(', ');
}

async function write() {
  const rows = summarize(runs);
  await writeFile(`${values.out}.json`, `${JSON.stringify({ ...about, rows, runs }, null, 1)}\n`);
  await writeFile(`${values.out}.md`, markdown(rows, about));
}
