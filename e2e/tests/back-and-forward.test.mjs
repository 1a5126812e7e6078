// A page that is left by a link sleeps in the browser's back/forward cache, without its connection, and wakes as it was; or the browser
// evicts it from there, and loads it anew.
// Guest, helper and host go away and come back; each finds its seat, and answers are the
// undisturbed ones.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, begin, contribute, enter, host, isUp, isUpOn, until } from '../harness/table.mjs';

const PROMPT = { max_tokens: 24, temperature: 0, raw: true };
const LONG = { ...PROMPT, max_tokens: 200 };
const TEXT = 'Once upon a time there was a table';

let relay;
const devices = {};
let link;
let calm;
let calmLong;
const step = story();

/** Follows a link to another site. */
const leave = ({ page }) => page.goto('data:text/html,Elsewhere');

/** Goes back to the page. */
async function comeBack({ page }) {
  await page.goBack({ waitUntil: 'commit' });
  await page.waitForFunction(() => window.potluck);
}

const asks = async ({ page }, options = PROMPT) => (await ask(page, TEXT, options)).tokens;

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  for (const name of ['host', 'helper', 'guest']) devices[name] = await Device.start(name, { keepsPages: true });
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await relay?.stop();
});

step('a host, a helper and a guest', async () => {
  link = await host(devices.host.page, relay, { model: 'tiny', share: 'Everyone takes part', context: 512 });
  await until(devices.host.page, isUp);
  calm = await asks(devices.host);
  calmLong = await asks(devices.host, LONG);
  await contribute(devices.helper.page, link);
  await until(devices.host.page, isUpOn(2));
  await enter(devices.guest.page, link);
  assert.deepEqual(await asks(devices.guest), calm);
});

step('a guest that went away comes back and asks', async () => {
  await leave(devices.guest);
  await until(devices.host.page, ({ peers }) => peers.length === 2, 'its seat is empty');
  await comeBack(devices.guest);
  await until(devices.guest.page, isUp, 'it sees the room again');
  assert.deepEqual(await asks(devices.guest), calm);
});

step('a helper that went away in the middle of an answer comes back and computes', async () => {
  const { asked } = await begin(devices.guest.page, TEXT, LONG);
  await leave(devices.helper);
  await until(devices.host.page, isUpOn(1), 'the host does without it');
  assert.deepEqual((await asked).tokens, calmLong, 'the answer goes on and is the undisturbed one');
  await comeBack(devices.helper);
  await until(devices.host.page, isUpOn(2), 'it has its part again');
  await until(devices.helper.page, isUpOn(2));
  assert.deepEqual(await asks(devices.helper), calm);
});

step('a host that went away comes back, and its room goes on', async () => {
  await leave(devices.host);
  await until(devices.guest.page, ({ connection }) => connection === 'WaitingForHost', 'the room waits for its host');
  await comeBack(devices.host);
  await until(devices.guest.page, ({ connection }) => connection === 'Connected', 'the room has its host again');
  await until(devices.host.page, isUpOn(2), 'the room is as it was');
  await until(devices.guest.page, isUpOn(2));
  assert.deepEqual(await asks(devices.guest), calm);
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
