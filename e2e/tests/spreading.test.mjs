// What a host chooses of how experts are spread: number format, copies, and when a second device is asked. The room says what is in use,
// and the choice comes back with the next room and after a reload; a stored one that no room can have gets a sentence.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { join, resolve } from 'node:path';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { set } from '../harness/stored.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, contribute, host, isUp, status, until } from '../harness/table.mjs';

const MODELS = join(resolve(import.meta.dirname, '../..'), 'public/models');
const TEXT = 'Once upon a time there was a table';
const PROMPT = { max_tokens: 16, temperature: 0, raw: true };
const CHOICE = { share: 'Spread the experts', context: 512, wire: 'f16', copies: 2, hedging: 2 };
const IN_USE = /^Numbers go to experts and back in half the bytes, .* \(f16\)\. 2 devices are asked at once, and the first answer counts\.$/;

let relay;
const devices = {};
const step = story();

before(async () => {
  relay = await Relay.start({ models: MODELS });
  for (const name of ['host', 'contributor']) devices[name] = await Device.start(name);
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await relay?.stop();
});

/** Each expert lies on both devices, whose numbers go as the host wants. */
const isSpread = (now) => isUp(now) && now.plan.experts?.short === 0 && now.plan.experts.fewest_holders === 2;
const spreading = ({ plan: { experts } }) => ({ wire: experts.wire, hedging: experts.hedging, copies: experts.wanted_holders });
const CHOSEN = { wire: 'F16', hedging: { Copies: 2 }, copies: 2 };

/** The fold in the host dialog. */
const fold = (page) => page.getByRole('dialog', { name: 'Host a model' }).locator('details:has(> summary:text("How experts are spread"))');

step('a host chooses f16 and two copies, a contributor joins, and an answer comes', async () => {
  const link = await host(devices.host.page, relay, CHOICE);
  await contribute(devices.contributor.page, link);
  await until(devices.host.page, isSpread, 'both devices have every expert');
  const { tokens } = await ask(devices.host.page, TEXT, PROMPT);
  assert.equal(tokens.length, PROMPT.max_tokens);
});

step('both devices see what is in use', async () => {
  for (const { page } of Object.values(devices)) {
    const now = await until(page, isSpread, 'both devices have every expert');
    assert.deepEqual(spreading(now), CHOSEN);
    const why = page.locator('details', { has: page.locator('summary', { hasText: 'Why this plan?' }) });
    if ((await why.getAttribute('open')) === null) await why.locator('summary').click();
    await why.getByText(IN_USE).waitFor();
  }
});

step('calls are asked twice, and carry two bytes for each number', async () => {
  const { page } = devices.host;
  const { plan } = await until(page, ({ plan }) => plan?.experts?.token_bytes > 0 && plan.experts.trips > 0, 'calls are measured');
  // Six blocks, four experts a token, 512 numbers a vector: one there and four back. As f32 that would be 61 kB.
  assert.ok(plan.experts.token_bytes <= 6 * 5 * 512 * 2, JSON.stringify(plan.experts));
});

step('a reload of the host keeps the choice', async () => {
  const { page } = devices.host;
  await page.reload();
  assert.deepEqual(spreading(await until(page, isSpread, 'the same room')), CHOSEN);
});

step('the next room begins with what was chosen', async () => {
  const { page } = devices.host;
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).click();
  await fold(page).waitFor();
  assert.notEqual(await fold(page).getAttribute('open'), null, 'open, because something was chosen');
  const values = await fold(page).getByRole('combobox').evaluateAll((fields) => fields.map(({ value }) => value));
  assert.deepEqual(values, ['f16', '2', '2']);
  await fold(page).getByLabel('Numbers sent to experts and back').selectOption('int8');
  await fold(page).getByText(/^Sends the least\. Numbers are rounded in groups of 32/).waitFor();
});

step('a stored choice that no room can have gets one sentence, and the usual one is used', async () => {
  const { page } = devices.contributor;
  await set(page, relay, { pooling: { hedging: { Copies: 9 } } });
  await page.reload();
  await page.getByRole('button', { name: 'Host a model' }).click();
  await fold(page).getByText('A stored choice of how experts are spread cannot be used: 9 devices cannot be asked at once, only 1 to 4. The usual choice is used instead.').waitFor();
  const values = await fold(page).getByRole('combobox').evaluateAll((fields) => fields.map(({ value }) => value));
  assert.deepEqual(values, ['f32', '2', 'adaptive']);
  assert.equal((await status(page)).room, null);
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
