// Bad input is normal: each gets one clear sentence on the page, nothing hangs, nothing already computed is lost.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, pipeline } from 'node:stream';
import { after, afterEach, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { CONTRIBUTE, ask, begin, contribute, enter, host, hostFile, isUp, isUpOn, lendNoMore, status, until } from '../harness/table.mjs';

const PROMPT = { max_tokens: 16, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let folder;
let model;
const devices = [];

const start = async (name, options) => {
  const device = await Device.start(name, options);
  devices.push(device);
  return device;
};

before(async () => {
  model = join(make('tiny'), 'tiny.gguf');
  folder = await mkdtemp(join(tmpdir(), 'potluck-bad-'));
  relay = await Relay.start({ models: make('tiny', 'six-blocks') });
});

afterEach(async () => {
  for (const device of devices.splice(0)) await device.stop();
});

after(async () => {
  await relay?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('a room that does not exist', async () => {
  const { page } = await start('guest');
  const says = async (link, sentence) => {
    await page.goto(`${relay.url}/r/${link}`);
    await page.getByRole('button', { name: 'Just chat' }).click();
    await page.getByText(sentence).first().waitFor();
  };
  await says('nosuchroom234567nosuchroom#CQkJCQkJCQkJCQkJCQkJCQ', /This room does not exist any more/);
  await says('k3v9abcdefgh2345#0123456789abcdef0123456789abcdef', /from an older version of Potluck/);
  await says('nosuchroom234567nosuchroom#CQkJCQk', /This link is not complete/);
});

test('no WebGPU: the door says so, and one can still chat', async () => {
  const host_ = await start('host');
  const link = await host(host_.page, relay, { model: 'tiny' });
  await until(host_.page, isUp);
  const { page } = await start('old', { gpu: false });
  await page.goto(relay.url);
  await page.getByText(/No WebGPU here/).first().waitFor();
  await enter(page, link);
  await until(page, isUp);
  const answer = await ask(page, TEXT, PROMPT);
  assert.equal(answer.tokens.length, PROMPT.max_tokens);
});

test('a truncated file names what is missing', async () => {
  const bytes = await readFile(model);
  const path = join(folder, 'truncated.gguf');
  await writeFile(path, bytes.subarray(0, bytes.length - 200_000));
  const { page } = await start('host');
  await hostFile(page, relay, path);
  await page.getByText(/truncated|ends before|too short|is missing|outside the file/i).first().waitFor();
});

test('a file that is no GGUF says so', async () => {
  const path = join(folder, 'noise.gguf');
  await writeFile(path, Buffer.alloc(100_000, 7));
  const { page } = await start('host');
  await hostFile(page, relay, path);
  await page.getByText(/not a GGUF/i).first().waitFor();
});

/** A server that ignores ranges and sends without end; of /silent.gguf it does not say how long it is. It emits 'hung-up' with
 * the path of a download that the browser ended. */
async function serveEndlessly() {
  const chunk = Buffer.alloc(64 << 10, 7);
  const endless = function* () {
    for (;;) yield chunk;
  };
  const server = createServer((request, response) => {
    const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'range' };
    const length = { 'content-length': 1e12 };
    if (request.method === 'OPTIONS') return response.writeHead(204, cors).end();
    response.writeHead(200, { ...cors, ...(request.url === '/silent.gguf' ? {} : length) });
    return pipeline(Readable.from(endless()), response, () => server.emit('hung-up', request.url));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function hostLink(page, url) {
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).click();
  const dialog = page.getByRole('dialog', { name: 'Host a model' });
  await dialog.getByRole('tab', { name: 'Link' }).click();
  await dialog.getByLabel('Address of a GGUF file').fill(url);
  await dialog.getByRole('button', { name: 'Open the room' }).click();
}

test('a server that ignores ranges and never ends is hung up on, and the worker lives', async (context) => {
  const server = await serveEndlessly();
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  for (const path of ['/told.gguf', '/silent.gguf']) {
    const { page } = await start('host');
    const nodes = [];
    page.on('worker', (worker) => worker.url().includes('node') && nodes.push(worker));
    const hungUp = once(server, 'hung-up');
    await hostLink(page, `http://127.0.0.1:${server.address().port}${path}`);
    await page.getByText(/sends whole files only/).first().waitFor();
    assert.deepEqual(await hungUp, [path], 'the download ends while the page stays open');
    assert.equal(nodes.length, 1, 'the worker was not started again');
  }
});

/** A server of one file that keeps the second halves of long ranges back until `release` is called. `whole` counts the bytes of
 * the model's weights that it has sent in complete replies. */
async function serveHalves(path) {
  const bytes = await readFile(path);
  const slow = { whole: 0 };
  const released = new Promise((release) => { slow.release = release; });
  slow.server = createServer(async (request, response) => {
    const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'range' };
    if (request.method === 'OPTIONS') return response.writeHead(204, cors).end();
    if (!request.headers.range) return response.writeHead(200, { ...cors, 'content-length': bytes.length }).end();
    const [first, last] = request.headers.range.match(/\d+/g).map(Number);
    const part = bytes.subarray(first, last + 1);
    const half = part.length < 100_000 ? part.length : part.length >> 1;
    response.writeHead(206, { ...cors, 'content-length': part.length }).write(part.subarray(0, half));
    if (half < part.length) await released;
    if (first > 0) slow.whole += part.length;
    return response.end(part.subarray(half));
  });
  slow.server.listen(0, '127.0.0.1');
  await once(slow.server, 'listening');
  return slow;
}

test('a download on a slow line is seen to go on before a piece is complete', async (context) => {
  const slow = await serveHalves(join(make('six-blocks'), 'six-blocks.gguf'));
  context.after(() => {
    slow.server.close();
    slow.server.closeAllConnections();
  });
  const { page } = await start('host');
  await hostLink(page, `http://127.0.0.1:${slow.server.address().port}/six-blocks.gguf`);
  let seen = 0;
  const done = ({ loading }) => {
    if (loading?.phase !== 'download') return 0;
    assert.ok(loading.done >= seen && loading.done <= loading.total, `${loading.done} of ${loading.total} bytes came after ${seen}`);
    seen = loading.done;
    return seen;
  };
  await until(page, (status) => done(status) > slow.whole, 'bytes of pieces that are not complete are shown');
  slow.release();
  await until(page, (status) => {
    done(status);
    return isUp(status);
  });
});

test("a file on the host's disk reaches a contributor as frames", async () => {
  const host_ = await start('host');
  await hostFile(host_.page, relay, model, { share: 'Everyone takes part' });
  await until(host_.page, isUp);
  const alone = await ask(host_.page, TEXT, PROMPT);
  const helper = await start('helper');
  const served = await relay.metric('potluck_relay_model_bytes_total').catch(() => 0);
  await contribute(helper.page, relay.url + (await status(host_.page)).room.link);
  await until(host_.page, isUpOn(2));
  const together = await ask(host_.page, TEXT, PROMPT);
  assert.deepEqual(together.tokens, alone.tokens);
  assert.equal(await relay.metric('potluck_relay_model_bytes_total').catch(() => 0), served, 'no weight came from the relay');
});

test('the relay dies and comes back in the middle of an answer', async () => {
  const host_ = await start('host');
  const link = await host(host_.page, relay, { model: 'tiny', share: 'Everyone takes part' });
  const helper = await start('helper');
  await contribute(helper.page, link);
  await until(host_.page, isUpOn(2));
  const long = { ...PROMPT, max_tokens: 200 };
  const calm = await ask(host_.page, TEXT, long);
  const { asked } = await begin(host_.page, TEXT, long);
  await relay.kill();
  await until(host_.page, (status) => status.connection !== 'Connected');
  await relay.spawn();
  assert.deepEqual((await asked).tokens, calm.tokens, 'the answer goes on and is the undisturbed one');
});

test('a dead node worker is started again and the room is still there', async () => {
  const host_ = await start('host');
  await host(host_.page, relay, { model: 'tiny' });
  await until(host_.page, isUp);
  const calm = await ask(host_.page, TEXT, PROMPT);
  const worker = host_.page.workers().find((worker) => worker.url().includes('node'));
  await worker.evaluate(() => self.close());
  await until(host_.page, (status) => status.plan?.state !== 'Up');
  await until(host_.page, isUp);
  assert.deepEqual((await ask(host_.page, TEXT, PROMPT)).tokens, calm.tokens);
});

test('a node worker whose program does not arrive is started again', async () => {
  const { page } = await start('host');
  const answers = [(route) => route.abort(), (route) => route.fulfill({ status: 503 }), () => {}];
  let requests = 0;
  // A request without an answer is given up with its worker.
  await page.route('**/node_bg.wasm*', (route) => (answers[requests++] ?? ((route) => route.continue()))(route));
  await host(page, relay, { model: 'tiny' });
  await until(page, isUp);
  assert.equal(requests, answers.length + 1);
  await page.getByText('Part of this page did not start. It is started again.').first().waitFor();
});

test('a storage worker whose program does not arrive costs the cache only', async () => {
  const { page } = await start('host');
  await page.route('**/storage_bg.wasm*', (route) => route.abort());
  await host(page, relay, { model: 'tiny' });
  await until(page, isUp);
  assert.ok((await ask(page, TEXT, PROMPT)).tokens.length > 0);
});

test('devices that join while a plan is still loading do not spoil what is loaded', async () => {
  // Loads are replaced in the middle of an upload, which once left weights half written.
  const models = { model: 'six-blocks', share: 'Everyone takes part' };
  const all = await Promise.all(['host', 'first', 'second'].map((name) => start(name)));
  const [host_, first, second] = all.map((device) => device.page);
  const link = await host(host_, relay, models);
  await Promise.all([contribute(first, link), contribute(second, link)]);
  await until(host_, isUpOn(3));
  const together = await ask(host_, TEXT, PROMPT);
  await first.close();
  await second.close();
  await until(host_, isUpOn(1));
  await host_.reload();
  await until(host_, isUp);
  assert.deepEqual(together.tokens, (await ask(host_, TEXT, PROMPT)).tokens);
});

test('a device that changes its mind while weights are fetched leaves nothing locked', async () => {
  const [host_, first] = (await Promise.all([start('host'), start('first')])).map((device) => device.page);
  const link = await host(host_, relay, { model: 'six-blocks', share: 'Everyone takes part', context: 512 });
  await contribute(first, link);
  for (let change = 0; change < 3; change += 1) {
    await lendNoMore(first);
    await first.getByRole('button', { name: CONTRIBUTE }).first().click();
    await until(first, (status) => status.role.worker);
  }
  await until(host_, isUpOn(2));
  for (const page of [host_, first]) {
    const locked = async () => {
      const { held } = await page.evaluate(() => navigator.locks.query());
      return held.map((lock) => lock.name).filter((name) => name.startsWith('potluck-unit-'));
    };
    // What is loaded in advance takes locks too, for a while.
    for (let look = 0; look < 600 && (await locked()).length > 0; look += 1) await page.waitForTimeout(100);
    assert.deepEqual(await locked(), [], 'a unit that stays locked can never be loaded again');
  }
});

test('two tabs of one profile share the cache: one downloads', async () => {
  const device = await start('twins');
  const before = await relay.metric('potluck_relay_model_bytes_total');
  const link = await host(device.page, relay, { model: 'six-blocks', share: 'Everyone takes part' });
  const second = await device.newTab();
  await contribute(second, link);
  await until(device.page, isUpOn(2));
  const first = await status(device.page);
  const served = (await relay.metric('potluck_relay_model_bytes_total')) - before;
  // Both tabs read the file's header; the weights are fetched once.
  const file = await open(model.replace('tiny', 'six-blocks'));
  const { size } = await file.stat();
  await file.close();
  assert.ok(served <= size * 1.2, `the relay served ${served} bytes of a file of ${size}`);
  assert.notEqual(first.peer, (await status(second)).peer, 'a tab of its own is a peer of its own');
});
