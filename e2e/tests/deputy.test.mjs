// The host of a room is frozen, and later killed, in the middle of an answer: the device that it chose goes on with the answer.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { MB, ask, assertQuiet, begin, contribute, enter, host, isUp, isUpOn, status, until } from '../harness/table.mjs';

const MODEL = 'six-blocks';
// One device is too small, two are enough.
const LENDS = 40 * MB;
const LONG = { max_tokens: 80, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let devices;
let link;
let undisturbed;
const step = story();

const hosts = (status) => status.role.coordinator;
/** Somebody else's room, with a plan. */
const takesPart = (status) => !hosts(status) && status.connection === 'Connected' && isUp(status);

/** The device that hosts the room now, and the others. */
async function sides(among) {
  const roles = await Promise.all(among.map(async ({ page }) => hosts(await status(page))));
  assert.equal(roles.filter(Boolean).length, 1, 'one device hosts');
  return { host: among[roles.indexOf(true)], others: among.filter((_, index) => !roles[index]) };
}

before(async () => {
  relay = await Relay.start({ models: make(MODEL) });
  devices = [await Device.start('first host'), await Device.start('second'), await Device.start('third')];
});

after(async () => {
  for (const device of devices ?? []) await device.stop();
  await relay?.stop();
});

step('a host chooses that another device goes on if it leaves, and everyone sees which one', async () => {
  const [room, second, third] = devices.map(({ page }) => page);
  link = await host(room, relay, { model: MODEL, lends: LENDS, share: 'Everyone takes part', context: 512 });
  await contribute(second, link, { lends: LENDS });
  await contribute(third, link, { lends: LENDS });
  await until(room, isUpOn(3));
  assert.equal((await status(room)).deputy, null, 'nobody takes over unless the host wishes it');
  await room.getByLabel('If this device leaves').selectOption({ label: 'Another device hosts the room' });
  const { deputy } = await until(third, ({ deputy }) => deputy !== null);
  assert.notEqual(deputy, (await status(room)).peer);
  await third.getByText('takes over if the host leaves', { exact: true }).first().waitFor();
  undisturbed = (await ask(third, TEXT, LONG)).tokens;
  assert.equal(undisturbed.length, LONG.max_tokens);
});

step('the host is frozen in the middle of an answer: it goes on, and is the undisturbed one', async () => {
  const [first, ...others] = devices;
  const asker = others[1].page;
  const { asked } = await begin(asker, TEXT, LONG, 15);
  first.freeze();
  assert.deepEqual((await asked).tokens, undisturbed);
  const { host: now } = await sides(others);
  await now.page.getByLabel('If this device leaves').waitFor();
  await until(asker, isUpOn(2));
});

step('the earlier host wakes up and takes part in the room', async () => {
  const [first] = devices;
  first.thaw();
  await until(first.page, takesPart);
  const { host: now } = await sides(devices);
  assert.notEqual(now, first);
  await until(now.page, isUpOn(3));
  assert.deepEqual((await ask(first.page, TEXT, LONG)).tokens, undisturbed);
});

step('the second host is killed, too, and the room goes on with what is left', async () => {
  const { host: second, others } = await sides(devices);
  await until(second.page, ({ deputy }) => deputy !== null);
  const asker = others[0].page;
  const { asked } = await begin(asker, TEXT, LONG, 15);
  await second.kill();
  assert.deepEqual((await asked).tokens, undisturbed);
  const { host: third } = await sides(others);
  await until(third.page, isUpOn(2));
});

step("the room's link still leads into it", async () => {
  const guest = await Device.start('guest');
  devices.push(guest);
  await enter(guest.page, link);
  assert.deepEqual((await ask(guest.page, TEXT, LONG)).tokens, undisturbed);
  assertQuiet(guest);
});
