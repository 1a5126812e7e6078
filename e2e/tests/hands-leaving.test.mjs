// Leaving the table: a host is asked whether its room ends, and the others are told what happened and what they can do.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { WIDTHS, kitchen } from '../harness/hands.mjs';
import { Relay } from '../harness/relay.mjs';
import { ask, assertQuiet, contribute, enter, eventually, host as openRoom, hostFile, isUp, until } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });

const isHosting = (status) => status.role.coordinator && status.connection === 'Connected' && isUp(status);
const isInside = (status) => !status.role.coordinator && status.room !== null && status.connection === 'Connected' && isUp(status);
const works = (status) => isInside(status) && status.role.worker;

/** The question that a host is asked. */
async function leave(page) {
  await page.getByRole('button', { name: 'Leave the room' }).click();
  const dialog = page.getByRole('dialog', { name: 'Leave the room' });
  await dialog.waitFor({ timeout: 60_000 });
  return { dialog, press: (name) => dialog.getByRole('button', { name, exact: true }).click() };
}

const atTheDoor = (page) => page.getByRole('button', { name: 'Host a model' }).waitFor();
const ownRoom = (page) => page.getByRole('list', { name: 'Your rooms' }).getByRole('listitem');

// The rooms of one relay are listed for a while: each table has a relay of its own.
const relays = [];
after(() => Promise.all(relays.map((relay) => relay.stop())));

/** A host, a worker and a guest at one table. The tests follow each other there. */
const atTable = here.shared(async () => {
  const relay = await Relay.start({ models: here.folder });
  relays.push(relay);
  const [host, worker, guest] = await Promise.all(['host', 'worker', 'guest'].map((name) => here.start(name)));
  await guest.page.setViewportSize(WIDTHS[1]);
  const link = await openRoom(host.page, relay, { model: 'soup', share: 'Everyone takes part' });
  await contribute(worker.page, link);
  await enter(guest.page, link);
  await until(worker.page, works);
  await until(guest.page, isInside);
  return { host, worker, guest, link, relay };
});

for (const viewport of WIDTHS) {
  test(`a host that stays is still at its table, ${viewport.width} pixels wide`, atTable(async ({ host }) => {
    const { page } = host;
    await page.setViewportSize(viewport);
    const { dialog, press } = await leave(page);
    for (const name of ['End the room', 'Close it for now', 'Stay']) await dialog.getByRole('button', { name, exact: true }).waitFor();
    await press('Stay');
    await dialog.waitFor({ state: 'hidden' });
    await leave(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    assert.equal((await ask(page, 'Still here?')).text, 'Soup is hot.');
    assert.ok(isHosting(await page.evaluate(() => window.potluck.status())));
  }));
}

test('a room that is closed for now opens again, and its devices come back by themselves', atTable(async ({ host, worker, guest }) => {
  await host.page.setViewportSize(WIDTHS[0]);
  const room = (await until(host.page, isHosting)).room.id;
  await (await leave(host.page)).press('Close it for now');
  await atTheDoor(host.page);
  const again = ownRoom(host.page).getByRole('button', { name: 'Open it again' });
  await again.waitFor();
  for (const { page } of [worker, guest]) await page.locator('.notices').getByText(/closed this room for now/).first().waitFor();
  await again.click();
  const now = await until(host.page, isHosting);
  assert.equal(now.room.id, room, 'it is the same room');
  await until(worker.page, works, 'the worker lends again');
  await until(guest.page, isInside, 'the guest is back');
  // The room's view is that of before until the host has sent another: for a moment, a question is refused with a sentence.
  const answer = () => ask(guest.page, 'Is it warm?').then(({ text }) => text, ({ message }) => message);
  await eventually(answer, (text) => text === 'Soup is hot.', 'the guest gets an answer');
}));

test('a guest leaves without a question', atTable(async ({ host, guest, link }) => {
  await until(host.page, ({ peers }) => peers.length === 3);
  await guest.page.setViewportSize(WIDTHS[0]);
  await guest.page.getByRole('button', { name: 'Leave the room' }).click();
  await atTheDoor(guest.page);
  assert.equal(await guest.page.getByRole('dialog').count(), 0);
  await until(host.page, ({ peers }) => peers.length === 2);
  // It comes back for the next test.
  await guest.page.setViewportSize(WIDTHS[1]);
  await enter(guest.page, link);
  await until(guest.page, isInside);
}));

test('a room that its host ends is over at once for all, and no longer listed', atTable(async ({ host, worker, guest, relay }) => {
  const visitor = await here.start('visitor');
  await visitor.page.goto(relay.url);
  const hint = visitor.page.locator('#contribute-hint');
  await hint.filter({ hasText: 'One room is open here' }).waitFor();
  await (await leave(host.page)).press('End the room');
  await atTheDoor(host.page);
  for (const { page } of [worker, guest]) {
    await page.getByText('The host has ended this room.').first().waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: /front page/ }).or(page.getByRole('link', { name: /front page/ })).first().waitFor();
  }
  // The worker's tab is still open.
  await eventually(() => hint.textContent(), (text) => !text.includes('One room is open'), 'the door offers the room no more');
  await visitor.page.reload();
  await hint.filter({ hasText: 'No room is open here yet' }).waitFor();
  await ownRoom(host.page).waitFor({ state: 'detached' });
  for (const { page } of [worker, guest]) {
    await page.getByRole('button', { name: /front page/ }).or(page.getByRole('link', { name: /front page/ })).first().click();
    await atTheDoor(page);
  }
  assertQuiet(visitor);
}));

const onDevice = here.shared(() => here.start('host'));

for (const viewport of WIDTHS) {
  test(`a model that cannot be loaded is said once, with what to do, ${viewport.width} pixels wide`, onDevice(async ({ page }) => {
    await page.setViewportSize(viewport);
    const bytes = await readFile(join(here.folder, 'soup.gguf'));
    const path = join(here.folder, 'truncated.gguf');
    await writeFile(path, bytes.subarray(0, bytes.length - 200_000));
    await hostFile(page, here.relay, path);
    const told = /truncated|ends before|too short|is missing|outside the file/i;
    await page.getByText(told).first().waitFor();
    const shown = async () => {
      const texts = await page.getByText(told).evaluateAll((elements) => elements.filter((element) => element.checkVisibility({ visibilityProperty: true })).map((element) => element.textContent.trim()));
      return texts.filter((text) => text !== '');
    };
    // Leaf elements only: Playwright names the innermost ones.
    await page.getByRole('button', { name: /Choose another model/ }).waitFor({ timeout: 60_000 });
    const sentences = await shown();
    assert.equal(sentences.length, 1, `it stands there once: ${JSON.stringify(sentences)}`);
    assert.equal(await page.getByText('What shall we cook up?').isVisible(), false, 'nothing is offered that cannot be done');
    await page.getByRole('button', { name: /leave/i }).first().waitFor();
    await page.getByRole('button', { name: /Choose another model/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Host a model' });
    await dialog.waitFor();
  }));
}
