import { Wllama } from '/wllama/index.js';

/** Loads a model, runs each prompt once to warm up and `answers` times that count. `gpu` false keeps everything on the processor. */
async function measure({ url, workloads, answers, gpu, ubatch }) {
  const log = [];
  const keep = (...words) => log.push(words.map(String).join(' '));
  const logger = { debug: keep, log: keep, warn: keep, error: keep };
  const wllama = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { logger });
  const longest = Math.max(...workloads.map(({ prompt, answer }) => prompt + answer));
  const started = performance.now();
  try {
    await wllama.loadModelFromUrl(url, {
      n_ctx: longest + 64,
      ...(ubatch ? { n_ubatch: ubatch } : {}),
      log_level: 2,
      useCache: false,
      ...(gpu ? {} : { n_gpu_layers: 0 }),
    });
    const loadMs = performance.now() - started;
    const results = [];
    let first = 0;
    for (const { prompt, answer } of workloads) {
      const warm = await complete(wllama, text(prompt), answer);
      // A vocabulary may cut a word, or put a marker before the text: the run that counts has the right length.
      const extra = (warm.timings?.prompt_n ?? prompt) - prompt;
      first ||= Date.now();
      const runs = [];
      for (let number = 0; number < answers; number++) runs.push(await complete(wllama, text(prompt - extra), answer));
      results.push({ prompt, answer, runs });
    }
    return { ok: true, loadMs, results, answering: [first, Date.now()], threads: wllama.getNumThreads(), version: Wllama.getLibllamaVersion(), log };
  } catch (error) {
    return { ok: false, error: String(error?.stack ?? error), log };
  } finally {
    await wllama.exit().catch(() => {});
  }
}

// Words that are one token each in common vocabularies, with the space before them.
const words = `the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were
  when we there can your which their said if do will each about how up out them then she many some so these would other into
  has more her two like him see time could no make than first been its who now people my made over did down only way find
  use may water long very after called just where most know`.split(/\s+/);

/** A text of so many words, in an order without a short period. wllama takes text only, no token ids. */
function text(count) {
  return Array.from({ length: count }, (_, position) => ` ${words[(position * 7919 + 13 * (position >> 5)) % words.length]}`).join('');
}

// Bytes that are no letter alone: random weights write them, and wllama stops with an error at text that is not UTF-8.
const halfLetters = Object.fromEntries(Array.from({ length: 128 }, (_, index) => [String(128 + index), -1000]));

async function complete(wllama, prompt, answer) {
  const started = performance.now();
  let first = 0;
  let timings = null;
  await wllama.createCompletion({
    prompt,
    max_tokens: answer,
    temperature: 0,
    top_k: 1,
    ignore_eos: true,
    logit_bias: halfLetters,
    cache_prompt: false,
    stream: true,
    onData: (chunk) => {
      first ||= performance.now();
      timings = chunk.timings ?? timings;
    },
  });
  return { timings, wallMs: performance.now() - started, firstMs: first - started };
}

window.measure = measure;
