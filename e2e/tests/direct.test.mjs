// Two devices on a slow line to the relay connect directly (WebRTC), lose the connection in the middle of an answer, find it again, and
// stop when somebody does not want it.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { SlowLine } from '../harness/slow_line.mjs';
import { story } from '../harness/story.mjs';
import { MB, ask, assertQuiet, begin, connectDirectly, contribute, host, isUpOn, status, until } from '../harness/table.mjs';

const MODEL = 'six-blocks';
// One device is too small, two are enough.
const LENDS = 40 * MB;
const LONG = { max_tokens: 60, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let line;
let devices;
let link;
let byRelay;
const step = story();

/** The path between two devices, as this page sees it; there are no others. */
const path = ({ paths }) => paths[0]?.[1];
const isDirect = (status) => path(status)?.direct === true && path(status).direct_ms !== null;
const isByRelay = (status) => path(status)?.direct === false;
const isMeasured = (status) => path(status)?.relay_ms > 0;

/** Keeps the page's connections where a test can end them. */
const keepConnections = (context) =>
  context.addInitScript(() => {
    window.connections = [];
    const Original = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Original {
      constructor(...options) {
        super(...options);
        window.connections.push(this);
      }
    };
  });

before(async () => {
  relay = await Relay.start({ models: make(MODEL) });
  line = await SlowLine.to(relay, 25);
  devices = [await Device.start('host', { prepare: keepConnections }), await Device.start('worker', { prepare: keepConnections })];
});

after(async () => {
  for (const device of devices ?? []) await device.stop();
  await line?.stop();
  await relay?.stop();
});

step('a host that wants no direct connections gets none', async () => {
  const [room, worker] = devices.map(({ page }) => page);
  await room.goto(line.through(relay.url));
  await connectDirectly(room, 'Never');
  link = await host(room, { url: new URL(line.through(relay.url)).origin }, { model: MODEL, lends: LENDS, share: 'Everyone takes part', context: 512 });
  await contribute(worker, link, { lends: LENDS });
  await until(room, isUpOn(2));
  byRelay = (await ask(room, TEXT, LONG)).tokens;
  assert.equal(byRelay.length, LONG.max_tokens);
  for (const { page } of devices) {
    assert.equal((await status(page)).direct_frames, 0);
    assert.equal(await page.evaluate(() => window.connections.length), 0, 'no address was told to anybody');
  }
});

step('two devices connect where the host allows it, because that is quicker', async () => {
  const [room, worker] = devices.map(({ page }) => page);
  await connectDirectly(room, 'Automatic');
  const { tokens } = await ask(room, TEXT, LONG);
  assert.deepEqual(tokens, byRelay);
  // Each message chooses its path, so there must be some: heartbeats are.
  for (const page of [room, worker]) {
    const { direct_ms, relay_ms } = path(await until(page, (status) => isDirect(status) && isMeasured(status)));
    assert.ok(direct_ms < relay_ms, `${direct_ms} ms directly, ${relay_ms} ms through the relay`);
  }
  await room.getByText(/^direct · .* round trip$/).first().waitFor();
});

step('each token takes the direct path, and the answer is the same', async () => {
  const [room] = devices.map(({ page }) => page);
  const before = (await status(room)).direct_frames;
  const forwarded = await relay.metric('potluck_relay_frames_forwarded_total');
  assert.deepEqual((await ask(room, TEXT, LONG)).tokens, byRelay);
  await until(room, ({ direct_frames }) => direct_frames >= before + LONG.max_tokens - 1, 'a frame a token came directly');
  // A few pings, and what the relay is asked itself.
  const further = (await relay.metric('potluck_relay_frames_forwarded_total')) - forwarded;
  assert.ok(further < LONG.max_tokens, `${further} frames through the relay for ${LONG.max_tokens} tokens`);
});

step('a connection that ends in the middle of an answer costs no token, and another one follows', async () => {
  const [room, worker] = devices.map(({ page }) => page);
  const made = await worker.evaluate(() => window.connections.length);
  const { asked } = await begin(room, TEXT, LONG, 10);
  await worker.evaluate(() => window.connections.at(-1).close());
  assert.deepEqual((await asked).tokens, byRelay);
  await until(room, isUpOn(2));
  await until(worker, isDirect);
  assert.ok((await worker.evaluate(() => window.connections.length)) > made, 'it is another connection');
});

step('a device that wants no direct connections has none from then on', async () => {
  const [room, worker] = devices.map(({ page }) => page);
  const { asked } = await begin(room, TEXT, LONG, 10);
  await connectDirectly(worker, 'Never');
  assert.deepEqual((await asked).tokens, byRelay);
  await until(worker, isByRelay);
  await until(room, isByRelay);
  assert.ok(await worker.evaluate(() => window.connections.every((connection) => connection.connectionState === 'closed')));
  assert.deepEqual((await ask(room, TEXT, LONG)).tokens, byRelay);
  assertQuiet(...devices);
});
