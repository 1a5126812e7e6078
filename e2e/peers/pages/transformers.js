import { AutoModelForCausalLM, Tensor, env } from '/transformers/transformers.min.js';

env.allowRemoteModels = false;
env.allowLocalModels = true;
env.localModelPath = '/onnx/';
env.useBrowserCache = false;
env.backends.onnx.wasm.wasmPaths = '/ort/';

/** Loads `/onnx/NAME/onnx/model_TYPE.onnx`, runs each prompt once to warm up and `answers` times that count. */
async function measure({ name, dtype, workloads, answers, device }) {
  const started = performance.now();
  const model = await AutoModelForCausalLM.from_pretrained(name, { dtype, device });
  const loadMs = performance.now() - started;
  const results = [];
  let first = 0;
  for (const { prompt, answer } of workloads) {
    await complete(model, prompt, answer);
    first ||= Date.now();
    const runs = [];
    for (let number = 0; number < answers; number++) runs.push(await complete(model, prompt, answer));
    results.push({ prompt, answer, runs });
  }
  const told = { loadMs, results, answering: [first, Date.now()], threads: env.backends.onnx.wasm.numThreads };
  await model.dispose();
  return told;
}

/** Greedy, any token ids: it takes them, so no tokenizer is needed. */
async function complete(model, prompt, answer) {
  const ids = BigInt64Array.from({ length: prompt }, (_, position) => BigInt(300 + ((position * 7919) % 4000)));
  const ones = new BigInt64Array(prompt).fill(1n);
  const times = [];
  const started = performance.now();
  await model.generate({
    inputs: new Tensor('int64', ids, [1, prompt]),
    attention_mask: new Tensor('int64', ones, [1, prompt]),
    max_new_tokens: answer,
    min_new_tokens: answer,
    do_sample: false,
    // The prompt comes first, then each token as it is known.
    streamer: { put: () => times.push(performance.now()), end() {} },
  });
  const [, firstToken, ...rest] = times;
  return { tokens: times.length - 1, firstMs: firstToken - started, decodeMs: rest.at(-1) - firstToken };
}

window.measure = measure;
