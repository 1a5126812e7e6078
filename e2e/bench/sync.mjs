// What a synchronization costs in this browser: a small stage's work (27 dispatches), a submit, a readback of 8 KB; after pauses,
// with empty submits that make the browser poll for finished work (poll kicks), and with commands encoded in advance.
//   node e2e/bench/sync.mjs [--seconds 2] [--out FILE.json]
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';

import { inPage } from './inpage.mjs';
import { record } from './results.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '2' }, out: { type: 'string' } } });

const results = await inPage('sync', measure, Number(values.seconds) * 1000);
const describe = ({ pause, kick, ready }) =>
  `after ${pause} ms, ${kick === null ? 'no poll kicks' : `a poll kick every ${kick} ms`}, ${ready ? 'encoded in advance' : 'encoded just then'}`;
results.forEach(({ runs, millis, ...how }) => {
  console.log(`${describe(how)}: ${millis.join(' / ')} ms (10%, median, 90% of ${runs})`);
});
await record('synchronization', results.map(({ millis, ...how }) => ({ label: describe(how), value: millis[1], unit: 'ms' })));
if (values.out) await writeFile(values.out, JSON.stringify(results, null, 1));

/** Runs in the page. */
async function measure(lasting) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  const gpu = await adapter.requestDevice();
  const code = `
    @group(0) @binding(0) var<storage, read_write> values: array<vec4f>;
    @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
      var value = values[id.x];
      for (var i = 0u; i < 60u; i++) { value = value * vec4f(1.0001) + vec4f(f32(i & 3u)); }
      values[id.x] = value;
    }`;
  const module = gpu.createShaderModule({ code });
  const pipeline = gpu.createComputePipeline({ layout: 'auto', compute: { module, entryPoint: 'main' } });
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = gpu.createBuffer({ size: 4 << 20, usage });
  const read = gpu.createBuffer({ size: 8192, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const group = gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource: { buffer } }] });

  const channel = new MessageChannel();
  const turn = () =>
    new Promise((done) => {
      channel.port1.onmessage = done;
      channel.port2.postMessage(null);
    });

  const values = new Float32Array(2048);
  const encode = () => {
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let i = 0; i < 27; i++) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(528);
    }
    pass.end();
    encoder.copyBufferToBuffer(buffer, 0, read, 0, 8192);
    return encoder.finish();
  };
  let commands = null;
  const once = async (kick) => {
    const started = performance.now();
    gpu.queue.writeBuffer(buffer, 1 << 20, values);
    gpu.queue.submit([commands ?? encode()]);
    let mapped = false;
    const mapping = read.mapAsync(GPUMapMode.READ).then(() => (mapped = true));
    for (let last = performance.now(); kick !== null && !mapped; ) {
      await turn();
      if (!mapped && performance.now() - last >= kick) {
        last = performance.now();
        gpu.queue.submit([]);
      }
    }
    await mapping;
    read.unmap();
    return performance.now() - started;
  };

  const sleep = (millis) => new Promise((done) => setTimeout(done, millis));
  const results = [];
  for (const pause of [0, 5, 10, 30])
    for (const [kick, ready] of [[null, false], [0.1, false], [0.1, true]]) {
      const times = [];
      for (const started = performance.now(); performance.now() - started < lasting; ) {
        commands = ready ? encode() : null;
        // What was encoded reaches the GPU process in a turn of its own.
        if (ready) await turn();
        if (pause) await sleep(pause);
        times.push(await once(kick));
      }
      times.sort((left, right) => left - right);
      const millis = [0.1, 0.5, 0.9].map((share) => Number(times[Math.floor(share * (times.length - 1))].toFixed(2)));
      results.push({ pause, kick, ready, runs: times.length, millis });
    }
  return results;
}
