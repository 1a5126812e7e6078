// What a decode step costs after a pause, and how much of that a GPU keep-alive saves: an idle GPU lowers its clock, and short work
// during the pause keeps it up. The step is that of a stage (27 dispatches and a readback), as in sync.mjs.
//   node e2e/bench/keep-alive.mjs [--seconds 2.5] [--out FILE.json]
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';

import { inPage } from './inpage.mjs';
import { record } from './results.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '2.5' }, out: { type: 'string' } } });

const results = await inPage('keep-alive', measure, Number(values.seconds) * 1000);
const describe = ({ pause, every, turns, share }) => {
  const work = turns === 0 ? 'no work in between' : `work of ${share.toFixed(2)} ms ${every === null ? 'all the time' : `every ${every} ms`}`;
  return `step after ${pause} ms, ${work}`;
};
results.forEach(({ millis, ...how }) => {
  console.log(`${describe(how)}: ${millis.map((one) => one.toFixed(2)).join(' / ')} ms (10%, median, 90%)`);
});
await record('keep-alive', results.map(({ millis, ...how }) => ({ label: describe(how), value: millis[1], unit: 'ms' })));
if (values.out) await writeFile(values.out, JSON.stringify(results, null, 1));

/** Runs in the page. */
async function measure(lasting) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  const gpu = await adapter.requestDevice();
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const make = (code, size) => {
    const compute = { module: gpu.createShaderModule({ code }), entryPoint: 'main' };
    const pipeline = gpu.createComputePipeline({ layout: 'auto', compute });
    const buffer = gpu.createBuffer({ size, usage });
    const group = gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource: { buffer } }] });
    return { pipeline, buffer, group };
  };
  const stage = make(
    `@group(0) @binding(0) var<storage, read_write> values: array<vec4f>;
    @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
      var value = values[id.x];
      for (var i = 0u; i < 60u; i++) { value = value * vec4f(1.0001) + vec4f(f32(i & 3u)); }
      values[id.x] = value;
    }`,
    4 << 20,
  );
  // One workgroup, so that it takes little power; its turns come from a buffer, so that none is left out.
  const spin = make(
    `@group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) lane: u32) {
      let turns = words[0];
      var value = words[1] + lane;
      for (var i = 0u; i < turns; i++) { value = value * 1664525u + 1013904223u; }
      words[2u + lane] = value;
    }`,
    256,
  );
  const read = gpu.createBuffer({ size: 8192, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const channel = new MessageChannel();
  const turn = () =>
    new Promise((done) => {
      channel.port1.onmessage = done;
      channel.port2.postMessage(null);
    });
  const sleep = (millis) => new Promise((done) => setTimeout(done, millis));
  const submit = ({ pipeline, group }, count, workgroups, after) => {
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let i = 0; i < count; i++) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(workgroups);
    }
    pass.end();
    after?.(encoder);
    gpu.queue.submit([encoder.finish()]);
  };
  const once = async (work) => {
    const started = performance.now();
    work();
    let mapped = false;
    const mapping = read.mapAsync(GPUMapMode.READ).then(() => (mapped = true));
    for (let last = performance.now(); !mapped; ) {
      await turn();
      if (!mapped && performance.now() - last >= 0.1) {
        last = performance.now();
        gpu.queue.submit([]);
      }
    }
    await mapping;
    read.unmap();
    return performance.now() - started;
  };
  const step = () => submit(stage, 27, 528, (encoder) => encoder.copyBufferToBuffer(stage.buffer, 0, read, 0, 8192));
  const middle = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];

  const results = [];
  for (const turns of [0, 10_000, 50_000, 250_000]) {
    gpu.queue.writeBuffer(spin.buffer, 0, new Uint32Array([turns]));
    // How long one takes at full clock.
    const alone = [];
    for (const end = performance.now() + 700; turns > 0 && performance.now() < end; ) {
      alone.push(await once(() => submit(spin, 1, 1, (encoder) => encoder.copyBufferToBuffer(spin.buffer, 0, read, 0, 256))));
    }
    for (const every of turns === 0 ? [null] : [null, 4]) {
      for (const pause of [5, 10, 30]) {
        let keeping = turns > 0;
        const keep = (async () => {
          while (keeping) {
            submit(spin, 1, 1);
            await (every === null ? gpu.queue.onSubmittedWorkDone() : sleep(every));
          }
        })();
        const times = [];
        // The clock follows what happens after a second or two.
        for (const started = performance.now(); performance.now() - started < lasting; ) {
          await sleep(pause);
          const millis = await once(step);
          if (performance.now() - started > 0.6 * lasting) times.push(millis);
        }
        keeping = false;
        await keep;
        times.sort((a, b) => a - b);
        const at = (share) => times[Math.floor(share * (times.length - 1))];
        results.push({ pause, every, turns, share: turns > 0 ? middle(alone) : 0, runs: times.length, millis: [at(0.1), at(0.5), at(0.9)] });
      }
    }
  }
  return results;
}
