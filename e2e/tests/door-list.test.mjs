// The front page: a listed room is a stranger's until the user has chosen it, and a link's key leaves the address bar.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { CONTRIBUTE, assertQuiet, host, isUp, status, until } from '../harness/table.mjs';

let relay;
const devices = {};
let link;
const step = story();

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  for (const name of ['host', 'visitor', 'guest']) devices[name] = await Device.start(name);
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await relay?.stop();
});

const address = (page) => page.evaluate(() => location.href);

step('a host sees the address of its room, without the key', async () => {
  const { page } = devices.host;
  link = await host(page, relay, { model: 'tiny', context: 512 });
  await until(page, isUp);
  assert.match(link, /\/r\/[a-z0-9]+#.+/);
  assert.equal(await address(page), link.split('#')[0]);
});

step('the only listed room is entered by its own button, not by the one at the door', async () => {
  const { page } = devices.visitor;
  await page.goto(relay.url);
  await page.getByText('One room is open here').waitFor();
  await page.getByRole('button', { name: CONTRIBUTE }).click();
  const dialog = page.getByRole('dialog', { name: 'Which room?' });
  const [, id] = /\/r\/([a-z0-9]+)/.exec(link);
  const card = dialog.getByRole('listitem').filter({ hasText: `Room ${id.slice(0, 4)}-${id.slice(4, 8)}` });
  await card.waitFor();
  assert.equal((await status(page)).connection, 'Idle', 'nothing was entered');
  await card.getByRole('button', { name: CONTRIBUTE }).click();
  await until(page, ({ connection }) => connection === 'WaitingForHost', 'the host is asked, one press later');
});

step('the key of a link leaves the address bar, and a reload still has it', async () => {
  const { page } = devices.guest;
  await page.goto(link);
  await page.getByText('You are invited to a room.').waitFor();
  assert.equal(await address(page), link.split('#')[0]);
  await page.reload();
  await page.getByText('You are invited to a room.').waitFor();
  await page.getByRole('button', { name: 'Just chat' }).click();
  const isInside = ({ connection, room }) => connection === 'Connected' && room !== null;
  await until(page, isInside);
  await page.reload();
  await until(page, isInside);
  assert.equal(await address(page), link.split('#')[0]);
});

step('the host finds in its log who came, and by what', async () => {
  const { page } = devices.host;
  const { doors } = await until(page, ({ doors }) => doors.log.some(({ event }) => event.CameIn === 'Link'));
  assert.equal(doors.log.filter(({ event }) => event.CameIn === 'List').length, 0, 'the visitor still waits');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite a device' });
  await dialog.getByText('Log', { exact: true }).click();
  await dialog.getByText(/joined with the room's link/).waitFor();
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
