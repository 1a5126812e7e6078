// Conversations are found and read without a room, and continued in one.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, drawn, kitchen, wide } from '../harness/hands.mjs';
import { conversation, store, visit } from '../harness/stored.mjs';
import { assertQuiet, endedAnswers, eventually, host, isUp, send, until } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });
const DAY = 86_400_000;
const ago = (days, ...parts) => ({ ...conversation(...parts), changed: Date.now() - days * DAY });
const MANY = 1_000;

const button = (within, name) => within.getByRole('button', { name, exact: true });
const titles = (drawer) => drawer.locator('.chat-name').allTextContents();

/** The drawer, opened from where this tab is. */
async function chats(page) {
  await button(page, 'Chats').click();
  return page.getByRole('dialog', { name: 'Chats' });
}

/** A device with these conversations, at the front page. */
async function reader(name, conversations, viewport = WIDTHS[0]) {
  const device = await here.start(name, { viewport, gpu: false });
  await store(device.page, here.relay, conversations);
  await visit(device.page, here.relay);
  return device;
}

for (const viewport of WIDTHS) {
  test(`conversations are read without a room, ${viewport.width} pixels wide`, async () => {
    const device = await reader('reader', [ago(0, 'Of soup', [['Soup?', 'It is hot.'], ['Bread?', 'It is fresh.']])], viewport);
    const { page } = device;
    const drawer = await chats(page);
    assert.equal(await button(drawer, 'New conversation').count(), 0, 'there is no room for one');
    await button(drawer, 'Of soup').click();
    await page.getByText('It is hot.').waitFor();
    assert.equal(new URL(page.url()).pathname, '/chats');
    assert.equal(await page.getByRole('textbox', { name: 'Message' }).count(), 0, 'nothing is asked');
    for (const name of ['Regenerate', 'Edit question', 'Send']) assert.equal(await button(page, name).count(), 0, name);
    await drawn(page);
    assert.deepEqual(await wide(page), []);
    await page.reload();
    await page.getByText('It is fresh.').waitFor();
    page.once('dialog', (dialog) => dialog.accept());
    await button(page, 'Delete question and answer').first().click();
    await eventually(() => page.locator('.question').allTextContents(), (now) => now.join() === 'Bread?', 'one is left');
    await page.getByRole('link', { name: 'Front page' }).click();
    await button(page, 'Chats').waitFor();
    await page.getByRole('button', { name: 'Host a model' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/');
    await page.goBack();
    await page.getByText('It is fresh.').waitFor();
    assertQuiet(device);
  });
}

test('the conversation that was read is continued in a room', async () => {
  const device = await here.start('host');
  const { page } = device;
  await store(page, here.relay, [ago(3, 'Of soup', [['Soup?', 'It is hot.']])]);
  await visit(page, here.relay);
  await button(await chats(page), 'Of soup').click();
  await page.getByText('It is hot.').waitFor();
  await host(page, here.relay, { model: 'soup' });
  await until(page, isUp);
  await page.getByText('It is hot.').waitFor();
  await send(page, 'And bread?');
  await eventually(() => endedAnswers(page).count(), (ended) => ended === 2, 'it is answered');
  await anew(page);
  const drawer = await chats(page);
  await drawer.getByRole('heading', { name: 'Today' }).waitFor();
  assertQuiet(device);
});

for (const viewport of WIDTHS) {
  test(`a conversation that is pinned stays at the top, ${viewport.width} pixels wide`, async () => {
    const device = await reader('reader', [ago(0, 'Of soup', [['Soup?', 'It is hot.']]), ago(2, 'Of bread', [['Bread?', 'It is fresh.']])], viewport);
    const { page } = device;
    const drawer = await chats(page);
    assert.deepEqual(await titles(drawer), ['Of soup', 'Of bread']);
    const pin = button(drawer, 'Pin Of bread');
    await pin.focus();
    await page.keyboard.press('Enter');
    await drawer.getByRole('heading', { name: 'Pinned' }).waitFor();
    assert.deepEqual(await titles(drawer), ['Of bread', 'Of soup']);
    const isFocused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
    await eventually(isFocused, (label) => label === 'Pin Of bread', 'the focus follows');
    assert.equal(await pin.getAttribute('aria-pressed'), 'true');
    await page.reload();
    await chats(page);
    await drawer.getByRole('heading', { name: 'Pinned' }).waitFor();
    await button(drawer, 'Of bread').click();
    await page.locator('.answer-model', { hasText: 'Reciting' }).waitFor();
    await chats(page);
    await pin.click();
    await drawer.getByRole('heading', { name: 'Pinned' }).waitFor({ state: 'detached' });
    assert.deepEqual(await titles(drawer), ['Of soup', 'Of bread']);
    assertQuiet(device);
  });
}

test('nobody without conversations is offered any', async () => {
  const { page } = await reader('newcomer', []);
  await page.getByRole('button', { name: 'Host a model' }).waitFor();
  assert.equal(await button(page, 'Chats').count(), 0);
});

test('the list says when, and finds words in all conversations', async () => {
  const others = Array.from({ length: MANY }, (_, index) => ago(400 + index, `Conversation ${index}`, [[`Question ${index}`, 'Yes.']]));
  const recent = [
    ago(0, 'Of soup', [['Soup?', 'It is HOT, and the crème brûlée is not.']]),
    ago(1, 'Of bread', [['Bread?', 'It is fresh.']]),
    ago(4, 'Of cake', [['Cake?', 'It is sweet.']]),
  ];
  const device = await reader('reader', [...others, ...recent]);
  const { page } = device;
  const drawer = await chats(page);
  const headings = await drawer.getByRole('heading', { level: 3 }).allTextContents();
  assert.deepEqual(headings.slice(0, 3), ['Today', 'Yesterday', 'Last 7 days']);
  for (const month of headings.slice(3)) assert.match(month, /^[A-Z][a-z]+ 20\d\d$/);
  const field = drawer.getByRole('searchbox', { name: 'Search' });
  await field.pressSequentially('hot');
  await drawer.getByText('1 conversation found').waitFor();
  assert.deepEqual(await titles(drawer), ['Of soup']);
  await drawer.getByText('Soup? It is HOT, and the').waitFor();
  await field.fill('CRÈME soup');
  await drawer.getByText('1 conversation found').waitFor();
  await field.fill('question 99');
  await drawer.getByText('19 conversations found').waitFor();
  await field.fill('nowhere');
  await drawer.getByText('0 conversations found').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await field.inputValue(), '', 'Escape clears the field first');
  await button(drawer, 'Of bread').waitFor();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'hidden' });
  assertQuiet(device);
});
