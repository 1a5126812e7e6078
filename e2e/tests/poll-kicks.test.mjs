// In Firefox the node makes the browser look for finished GPU work. A stand-in for Firefox's queue, which looks only when a submit
// arrives, tells without a GPU and without a clock whether somebody makes it look.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { runInNewContext } from 'node:vm';

const loaders = resolve(import.meta.dirname, '../../app/web/loaders');
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0';
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36';
const SAFARI = 'Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/145.0 Mobile/15E148 Safari/605.1.15';

/** What the loader of the node worker leaves in a browser: its GPU, and the files that it loaded. */
function load(userAgent, { gpu = true } = {}) {
  const loaded = [];
  const channels = [];
  class GPUQueue {
    submits = 0;
    working = [];
    submit() {
      this.submits += 1;
      // Work is finished by the time of the third look at it.
      for (const work of this.working) if ((work.looks += 1) === 3) work.done();
      this.working = this.working.filter(({ looks }) => looks < 3);
    }
    begin() {
      return new Promise((done) => this.working.push({ looks: 0, done }));
    }
    onSubmittedWorkDone() {
      return this.begin();
    }
  }
  class GPUBuffer {
    constructor(queue) {
      this.queue = queue;
    }
    mapAsync() {
      return this.queue.begin();
    }
  }
  class Channel {
    constructor() {
      const channel = new MessageChannel();
      channels.push(channel);
      return channel;
    }
  }
  const names = { navigator: { userAgent }, location: { search: '?v=1' }, performance, setTimeout, MessageChannel: Channel };
  const globals = { ...names, ...(gpu ? { GPUQueue, GPUBuffer } : {}), wasm_bindgen: async () => {} };
  globals.self = globals;
  globals.importScripts = (address) => {
    loaded.push(address);
    const file = address.match(/poll_kicks\.js/);
    if (file) runInNewContext(readFileSync(`${loaders}/${file[0]}`, 'utf8'), globals);
  };
  runInNewContext(readFileSync(`${loaders}/node_loader.js`, 'utf8'), globals);
  const close = () => channels.forEach(({ port1 }) => port1.close());
  return { GPUQueue, GPUBuffer, loaded, close };
}

for (const [what, wait] of Object.entries({
  'a readback': (queue, { GPUBuffer }) => new GPUBuffer(queue).mapAsync(),
  'the end of all work': (queue) => queue.onSubmittedWorkDone(),
  'two things at once': (queue, { GPUBuffer }) => Promise.all([queue.onSubmittedWorkDone(), new GPUBuffer(queue).mapAsync()]),
})) {
  test(`${what} is looked for until it is there, and no longer`, async () => {
    const browser = load(FIREFOX);
    const queue = new browser.GPUQueue();
    queue.submit([]);
    await wait(queue, browser);
    const { submits } = queue;
    assert.ok(submits >= 4, `${submits} submits`);
    // Several turns of the event loop, in any of which another look could come.
    for (let turns = 0; turns < 20; turns += 1) await new Promise((done) => setTimeout(done, 1));
    assert.equal(queue.submits, submits, 'nothing is awaited, so nobody may look');
    // The next thing is looked for again.
    await wait(queue, browser);
    assert.ok(queue.submits > submits);
    browser.close();
  });
}

test('other browsers, and a Firefox without WebGPU, load nothing for it', () => {
  for (const [name, browser] of Object.entries({ CHROME: load(CHROME), SAFARI: load(SAFARI), 'without WebGPU': load(FIREFOX, { gpu: false }) })) {
    assert.deepEqual(browser.loaded, ['./node.js?v=1'], name);
  }
  assert.deepEqual(load(FIREFOX).loaded, ['./poll_kicks.js?v=1', './node.js?v=1']);
});
