// The same messages, dispatches and synchronizations as a room whose experts are spread, in bare pages: what the browser, the relay and the
// GPU take for them, without Potluck. Each block: the host's work and its readback, a message to every other browser (together, as the
// product sends them), their work and readback at the same time, their messages back.
import { median, quantile } from '../hops.mjs';
import { ROOM, signer } from '../relay_entry.mjs';

/** Of Qwen3-30B-A3B: width of a hidden vector, experts of a token. */
const WIDTH = 2_048;
const USED = 8;
/** Bytes of a number. */
const BYTES = { f32: 4, f16: 2, bf16: 2, int8: 1.125 };
const TOKENS = 64;
/** Dispatches of a block's attention with its router, and of a holder's experts. */
const DISPATCHES = { host: 16, holder: 6 };

/** Measures a case of kind `bare`. */
export async function measureBare(room, relay, { blocks, others }, wire) {
  const vector = WIDTH * BYTES[wire];
  const began = Date.now();
  const answer = Math.ceil(USED / others) * vector;
  const host = await openBare(room, relay, others, { ...DISPATCHES, answer });
  const up = (Date.now() - began) / 1_000;
  const measured = {};
  for (const [part, how] of Object.entries({ all: { messages: true, gpu: true }, messages: { messages: true, gpu: false }, gpu: { messages: false, gpu: true } })) {
    room.step = `bare: ${part}`;
    measured[part] = await host.evaluate((how) => window.bare(how), { ...how, others, vector, count: TOKENS * Math.min(blocks, 8) });
  }
  const token = (millis) => millis * blocks;
  const block = (part) => median(measured[part].slice(8));
  return {
    up_seconds: up,
    holders: others,
    token_ms: token(block('all')),
    p50_ms: token(block('all')),
    p95_ms: token(quantile(measured.all.slice(8), 0.95)),
    kb_a_token: (blocks * others * (vector + answer)) / 1e3,
    experts: { trips_ms: token(block('messages')), own_ms: token(block('gpu')) },
    bare: { block_ms: block('all'), messages_ms: block('messages'), gpu_ms: block('gpu') },
    prompts: [],
    // Those pages have no icon, which is an error on a console.
    errors: [],
  };
}

/**
 * Stages in bare pages: the host's work, a message to the next one, its work, and so on, and a small message back to the host. Milliseconds
 * of each token.
 */
export async function measureBareStages(room, relay, { others, dispatches, tokens }) {
  const host = await openBare(room, relay, others, { host: dispatches, holder: dispatches, answer: 8_192 });
  room.step = 'bare stages';
  return host.evaluate((how) => window.bare(how), { messages: true, gpu: true, chain: true, others, vector: 8_192, count: tokens });
}

/** A host's page and others, all in the relay's room; `host` and `holder` are dispatches. */
async function openBare(room, relay, others, { host: first, holder, answer }) {
  room.step = 'bare pages open';
  const open = async (number) => {
    const page = await room.browser(`bare ${number}`);
    // A page of the relay that is no page of Potluck's.
    await page.goto(`${relay.url}/models`);
    return page;
  };
  // The first one owns the room, so it enters first.
  const [host, ...holders] = await Promise.all(Array.from({ length: others + 1 }, (_, number) => open(number)));
  const url = `${relay.url.replace('http', 'ws')}/rooms/${ROOM}`;
  const code = `(${work})(${signer})`;
  await host.evaluate(start, [code, { url, number: 0, dispatches: first }]);
  await Promise.all(holders.map((page, index) => page.evaluate(start, [code, { url, number: index + 1, dispatches: holder, answer }])));
  return host;
}

/** Runs in the page. */
async function start([code, opened]) {
  const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })));
  const heard = () => new Promise((done, failed) => {
    worker.onmessage = ({ data }) => (data?.failed ? failed(new Error(data.failed)) : done(data));
    worker.onerror = (event) => failed(new Error(event.message));
  });
  window.bare = (how) => {
    worker.postMessage({ how });
    return heard();
  };
  worker.postMessage({ opened });
  await heard();
}

/** Runs in a worker: answers messages with work of its own, and measures when asked. */
function work(signer) {
  const PARTS = 0xffff_fffe;
  /** A message that stages pass on begins with this. */
  const CHAIN = 2;
  let socket;
  let came;
  const peers = [];
  let compute;

  /** Some dispatches and a readback; `input` is written before. */
  async function gpu(dispatches, bytes) {
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
    const device = await adapter.requestDevice();
    const isSoftware = /swiftshader|llvmpipe/i.test(`${adapter.info.architecture} ${adapter.info.description} ${adapter.info.device}`);
    const code = `
      @group(0) @binding(0) var<storage, read_write> values: array<vec4f>;
      @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
        values[id.x] = values[id.x] * vec4f(1.0001) + vec4f(1.0);
      }`;
    const pipeline = device.createComputePipeline({ layout: 'auto', compute: { module: device.createShaderModule({ code }) } });
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = device.createBuffer({ size: 1 << 20, usage });
    const read = device.createBuffer({ size: bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource: { buffer } }] });
    const channel = new MessageChannel();
    const turn = () => new Promise((done) => {
      channel.port1.onmessage = done;
      channel.port2.postMessage(null);
    });
    return async (input) => {
      device.queue.writeBuffer(buffer, 0, input);
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      for (let index = 0; index < dispatches; index += 1) pass.dispatchWorkgroups(64);
      pass.end();
      encoder.copyBufferToBuffer(buffer, 0, read, 0, bytes);
      device.queue.submit([encoder.finish()]);
      let mapped = false;
      const mapping = read.mapAsync(GPUMapMode.READ).then(() => (mapped = true));
      // Poll kicks, as the product sends them; they slow software adapters down.
      for (let before = performance.now(); !mapped && !isSoftware; ) {
        await turn();
        if (!mapped && performance.now() - before >= 0.1) {
          before = performance.now();
          device.queue.submit([]);
        }
      }
      await mapping;
      const output = read.getMappedRange().slice(0);
      read.unmap();
      return output;
    };
  }

  /** Enters the room; done when the relay has let this worker in. */
  async function open({ url, number, dispatches, answer }) {
    compute = await gpu(dispatches, answer ?? 8_192);
    const owner = await signer(7);
    socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    await new Promise((done, failed) => {
      socket.onclose = () => failed(new Error('the relay closed the connection'));
      socket.onmessage = ({ data }) => {
        if (typeof data !== 'string') return received(data, number);
        const { type, nonce, route, members } = JSON.parse(data);
        if (type === 'challenge') owner.enter(nonce, url.split('/').pop(), number, new URL(url).host).then((entry) => socket.send(entry));
        if (type === 'join') peers.push(route);
        if (type !== 'welcome') return;
        peers.push(...members);
        done();
      };
    });
  }

  /** A holder answers, the host counts. A message begins with its other end's route. */
  async function received(message, number) {
    if (number === 0) return came?.();
    if (new Uint8Array(message)[4] === CHAIN) return passOn(message);
    const withGpu = new Uint8Array(message)[4] === 1;
    const output = withGpu ? await compute(new Uint8Array(message, 4)) : new ArrayBuffer(8_192);
    const reply = new Uint8Array(4 + output.byteLength);
    reply.set(new Uint8Array(message, 0, 4));
    reply.set(new Uint8Array(output), 4);
    socket.send(reply);
  }

  /** A stage: its work, and the vector to the next one, or the first numbers of it back to the host. The host's route is known to the first. */
  async function passOn(message) {
    const view = new DataView(message);
    const [left, host] = [view.getUint8(5), view.getUint32(8) || view.getUint32(0)];
    await compute(new Uint8Array(message, 4));
    if (left === 0) {
      const back = new DataView(new ArrayBuffer(64));
      back.setUint32(0, host);
      return socket.send(back.buffer);
    }
    view.setUint32(0, view.getUint32(12));
    view.setUint8(5, left - 1);
    view.setUint32(8, host);
    for (let index = 0; index + 1 < left; index += 1) view.setUint32(12 + 4 * index, view.getUint32(16 + 4 * index));
    socket.send(message);
  }

  /** A vector for the first of these stages, with the routes of the others. */
  function chain([first, ...others], bytes) {
    const view = new DataView(new ArrayBuffer(4 + bytes));
    view.setUint32(0, first);
    view.setUint8(4, CHAIN);
    view.setUint8(5, others.length);
    others.forEach((route, index) => view.setUint32(12 + 4 * index, route));
    return view.buffer;
  }

  /** One message to the relay for all. */
  function together(peers, bytes, flag) {
    const message = new Uint8Array(4 + peers.length * (8 + bytes));
    const view = new DataView(message.buffer);
    view.setUint32(0, PARTS);
    peers.forEach((peer, index) => {
      const at = 4 + index * (8 + bytes);
      view.setUint32(at, peer);
      view.setUint32(at + 4, bytes);
      message[at + 8] = flag;
    });
    return message;
  }

  async function measure({ messages, gpu, chain: chained, others, vector, count }) {
    const asked = peers.slice(0, others);
    if (asked.length < others) throw new Error(`${asked.length} of ${others} others are here`);
    const message = chained ? () => chain(asked, vector) : () => whole;
    const whole = together(asked, vector, gpu ? 1 : 0);
    const answers = chained ? Math.min(1, others) : others;
    const input = new Uint8Array(chained ? vector : 8 * vector);
    const times = [];
    for (let block = 0; block < count; block += 1) {
      const began = performance.now();
      if (gpu) await compute(input);
      if (messages && others > 0) {
        let left = answers;
        const all = new Promise((done) => (came = () => (left -= 1) === 0 && done()));
        socket.send(message());
        await all;
      }
      times.push(performance.now() - began);
    }
    return times;
  }

  onmessage = async ({ data }) => {
    try {
      postMessage(data.opened ? ((await open(data.opened)), null) : await measure(data.how));
    } catch (error) {
      postMessage({ failed: String(error) });
    }
  };
}
