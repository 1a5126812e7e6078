// Marks at the edges of a node's worker: when it submits to the GPU, asks for a result and gets it, when messages leave and arrive, and
// when words of an answer go to the page. They are set from outside, around the browser's own functions, so the product has no code for
// them and pays nothing when nobody measures. What happens inside of the worker is in `potluck.trace()`, by the same clock.

/** Marks that a worker keeps: the newest. */
const KEPT = 1 << 16;

/** The worker of a tab's node, once it runs. */
export async function node(page) {
  for (;;) {
    const worker = page.workers().find((worker) => worker.url().includes('/node_loader.js'));
    if (worker) return worker;
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Begins to mark in a tab; what it marked before is forgotten. */
export async function mark(page) {
  await (await node(page)).evaluate(install, KEPT);
}

/** Ends marking. Gives `{ origin, marks: [{ at, kind, value }] }`: `at` in the worker's milliseconds, which begin at `origin`. */
export async function marked(page) {
  const { origin, at, kinds, values, kicks } = await (await node(page)).evaluate(take);
  return { origin, kicks, marks: at.map((at, index) => ({ at, kind: kinds[index], value: values[index] })) };
}

/**
 * Runs in the worker, now and when marking begins again. Kinds, with their values:
 * `map`, `mapped`: a result is asked for, and is here (number of the map); what it waits for was submitted just before.
 * `submit` (command buffers). `sent`, `came`: a message to or from the relay (bytes); `posted`, `got`: of a tab of this browser.
 * `words`: a piece of an answer goes to the page (tokens).
 */
function install(kept) {
  const now = () => performance.now();
  const marks = { next: 0, kicks: 0, at: new Float64Array(kept), values: new Float64Array(kept), kinds: new Array(kept) };
  const add = (kind, value) => {
    const ring = self.potluckMarks;
    if (!ring) return;
    const index = ring.next++ % kept;
    ring.at[index] = now();
    ring.kinds[index] = kind;
    ring.values[index] = value;
  };
  const isNew = self.potluckMarks === undefined;
  self.potluckMarks = marks;
  if (!isNew) return;

  /** Calls `before` ahead of a method. */
  const wrap = (type, name, before) => {
    const inner = type.prototype[name];
    type.prototype[name] = function (...args) {
      before.call(this, ...args);
      return inner.apply(this, args);
    };
  };
  if (self.GPUQueue) {
    wrap(GPUQueue, 'submit', (buffers) => {
      if (buffers.length > 0) add('submit', buffers.length);
      else if (self.potluckMarks) self.potluckMarks.kicks += 1;
    });
    let maps = 0;
    const { mapAsync } = GPUBuffer.prototype;
    GPUBuffer.prototype.mapAsync = function (...args) {
      const map = (maps += 1);
      add('map', map);
      const mapping = mapAsync.apply(this, args);
      // Set before anybody else waits for it, so it is called first.
      mapping.then(() => add('mapped', map), () => {});
      return mapping;
    };
  }
  const size = (data) => data?.byteLength ?? data?.length ?? 0;
  const heard = new WeakSet();
  // The product has set its handler before it sends anything. A listener would be called after it.
  const listen = (target, kind) => {
    const { onmessage } = target;
    if (heard.has(target) || !onmessage) return;
    heard.add(target);
    target.onmessage = (event) => {
      add(kind, size(event.data));
      return onmessage.call(target, event);
    };
  };
  wrap(WebSocket, 'send', function (data) {
    listen(this, 'came');
    add('sent', size(data));
  });
  wrap(MessagePort, 'postMessage', function (data) {
    // The worker's other ports only pass turns.
    if (!(data instanceof ArrayBuffer)) return;
    listen(this, 'got');
    add('posted', size(data));
  });
  const post = self.postMessage;
  self.postMessage = function (...args) {
    const tokens = args[0]?.Answer?.event?.Text?.tokens;
    if (tokens) add('words', tokens.length);
    return post.apply(self, args);
  };
}

/** Runs in the worker. */
function take() {
  const { next, kicks, at, values, kinds } = self.potluckMarks;
  self.potluckMarks = null;
  const first = Math.max(0, next - kinds.length);
  const order = Array.from({ length: next - first }, (_, index) => (first + index) % kinds.length);
  const of = (list) => order.map((index) => list[index]);
  return { origin: performance.timeOrigin, kicks, at: of(at), values: of(values), kinds: of(kinds) };
}
