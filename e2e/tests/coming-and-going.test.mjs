// A browser puts a tab to sleep, somebody clears the site's data under an open room, and a browser may store nothing at all.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, begin, contribute, eventually, host, isUp, isUpOn, until } from '../harness/table.mjs';

const PROMPT = { max_tokens: 24, temperature: 0, raw: true };
const LONG = { ...PROMPT, max_tokens: 200 };
const TEXT = 'Once upon a time there was a table';
/** Chrome's setting "Don't allow sites to save data on your device", in a new profile. */
const BLOCKS_DATA = { profile: { default_content_setting_values: { cookies: 2 } } };

let relay;
const devices = {};
let link;
let calm;
let calmLong;
const step = story();

const asks = async ({ page }, options = PROMPT) => (await ask(page, TEXT, options)).tokens;

/** Asks until there is an answer: Chromium can hang in a file whose data it clears, and then the page starts its worker anew. */
const asksUntilAnswered = (device) => eventually(() => asks(device).catch(() => null), () => true, 'an answer');

/** Speaks to the browser's own debugger, and leaves: a page with a debugger is treated otherwise. */
async function tell({ context, page }, method, parameters) {
  const session = await context.newCDPSession(page);
  await session.send(method, parameters);
  await session.detach();
}

const clearData = (device) => tell(device, 'Storage.clearDataForOrigin', { origin: new URL(relay.url).origin, storageTypes: 'all' });

/** Writes a new profile's settings before its browser starts. */
const settings = (preferences) => async (profile) => {
  await mkdir(join(profile, 'Default'), { recursive: true });
  await writeFile(join(profile, 'Default', 'Preferences'), JSON.stringify(preferences));
};

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  for (const name of ['host', 'helper']) devices[name] = await Device.start(name);
  devices.blocked = await Device.start('blocked', { fill: settings(BLOCKS_DATA) });
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await relay?.stop();
});

step('a host and a helper', async () => {
  link = await host(devices.host.page, relay, { model: 'tiny', share: 'Everyone takes part', context: 512 });
  await until(devices.host.page, isUp);
  calm = await asks(devices.host);
  calmLong = await asks(devices.host, LONG);
  await contribute(devices.helper.page, link);
  await until(devices.host.page, isUpOn(2));
});

step('a helper whose page is frozen in the middle of an answer is there when it wakes', async () => {
  const { asked } = await begin(devices.host.page, TEXT, LONG);
  await tell(devices.helper, 'Page.setWebLifecycleState', { state: 'frozen' });
  assert.deepEqual((await asked).tokens, calmLong, 'the answer is the undisturbed one');
  await tell(devices.helper, 'Page.setWebLifecycleState', { state: 'active' });
  await until(devices.host.page, isUpOn(2));
  await until(devices.helper.page, isUpOn(2), 'its page shows the room again');
  assert.deepEqual(await asks(devices.helper), calm);
});

step('the site data of host and helper are cleared under the open room: it goes on', async () => {
  for (const device of [devices.host, devices.helper]) {
    await clearData(device);
    assert.deepEqual(await asksUntilAnswered(devices.host), calm);
    assert.deepEqual(await asksUntilAnswered(devices.helper), calm);
  }
});

step('after a reload the host has its room again, whose key the tab kept, and loads what was cleared', async () => {
  await devices.host.page.reload();
  await until(devices.host.page, isUpOn(2));
  assert.deepEqual(await asksUntilAnswered(devices.host), calm);
});

step('a browser that may store nothing says so, hosts and answers', async () => {
  const { page } = devices.blocked;
  const denied = () => {
    try {
      return localStorage.length;
    } catch (error) {
      return error.name;
    }
  };
  await host(page, relay, { model: 'tiny', context: 512 });
  assert.equal(await page.evaluate(denied), 'SecurityError', 'this browser stores nothing');
  await until(page, isUp);
  await page.getByText('This browser does not store data for this page. Conversations are lost when you close the tab.').waitFor();
  assert.deepEqual(await asks(devices.blocked), calm);
});

step('it also contributes', async () => {
  const { page } = devices.blocked;
  await contribute(page, link);
  await until(page, ({ connection }) => connection === 'Connected');
  await until(devices.host.page, ({ peers, plan }) => peers.length === 3 && plan?.state === 'Up');
  assert.deepEqual(await asks(devices.blocked), calm);
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
