// Two tabs of one browser share their conversations. Whatever they do at once, neither overwrites what the other one wrote.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { kept } from '../harness/stored.mjs';
import { story } from '../harness/story.mjs';
import { assertQuiet, enter, eventually, host, isUp, send, until } from '../harness/table.mjs';

let relay;
let browser;
// `one` hosts and stays behind `two` until it is brought to the front.
let one;
let two;
const step = story();

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  browser = await Device.start('browser');
});

after(async () => {
  await browser?.stop();
  await relay?.stop();
});

/** The conversations in the browser's database. */
const stored = (page) => kept(page, 'conversations');

/** Waits until the stored conversations fulfil a condition. */
const untilStored = (condition) => eventually(() => stored(two), condition);

const questions = ({ turns }) => turns.map((turn) => turn.question);
const isAnswered = ({ turns }) => turns.every((turn) => turn.answer.request === null);
const began = (records, question) => records.filter((record) => questions(record)[0] === question);

/** Asks in a new conversation, which comes to the front. Returns once it is stored. */
async function askAnew(page, question) {
  await page.bringToFront();
  const fresh = page.getByRole('button', { name: 'New', exact: true });
  // An empty conversation is a new one already.
  if (await fresh.isEnabled()) await fresh.click();
  await send(page, question);
  await untilStored((records) => began(records, question).length === 1);
}

/** Shows all conversations to a tab that has just been opened again. */
async function list(page) {
  await page.bringToFront();
  await page.reload();
  await until(page, isUp);
  await page.getByRole('button', { name: 'Chats' }).click();
  return page.getByRole('dialog', { name: 'Chats' });
}

step('two tabs open one conversation', async () => {
  one = browser.page;
  const link = await host(one, relay, { model: 'tiny', context: 2048 });
  await until(one, isUp);
  await send(one, 'Where it began');
  two = await browser.newTab();
  await enter(two, link);
  await untilStored((records) => records.length === 1 && records.every(isAnswered));
  const chats = await list(two);
  await chats.getByRole('button', { name: 'Where it began', exact: true }).click();
  await two.locator('.question', { hasText: 'Where it began' }).waitFor();
});

step('both go on at once: one of them goes on in a copy, and nothing is lost', async () => {
  const told = Promise.any([one, two].map((page) => page.getByText('Another tab continued the same conversation').waitFor()));
  // The tab behind is not brought to the front: there it would read what the other one wrote.
  await one.getByRole('textbox', { name: 'Message' }).fill('What one wants to know');
  await one.getByRole('button', { name: 'Send' }).dispatchEvent('click');
  await send(two, 'What two wants to know');
  await told;
  const records = await untilStored((records) => records.length === 2 && records.every(isAnswered));
  assert.deepEqual(records.map(questions).sort(), [
    ['Where it began', 'What one wants to know'],
    ['Where it began', 'What two wants to know'],
  ]);
  const chats = await list(two);
  for (const name of ['Where it began', 'Where it began (copy)']) await chats.getByRole('button', { name, exact: true }).waitFor();
});

step('a tab learns that another one deleted what it answers, and it does not come back', async () => {
  await askAnew(one, 'To be deleted');
  const told = one.getByText('Another tab deleted this conversation').waitFor();
  const chats = await list(two);
  two.once('dialog', (dialog) => dialog.accept());
  await chats.getByRole('button', { name: 'Delete To be deleted' }).click();
  await untilStored((records) => began(records, 'To be deleted').length === 0);
  // If the answer is over, the tab looks when somebody comes back to it.
  const looking = await one.evaluate(() => setInterval(() => window.dispatchEvent(new Event('focus')), 200));
  await told;
  await one.evaluate((timer) => clearInterval(timer), looking);
  await one.reload();
  await until(one, isUp);
  assert.deepEqual(began(await stored(one), 'To be deleted'), []);
});

step('a title given in another tab stays while the answer grows', async () => {
  await askAnew(one, 'To be renamed');
  const chats = await list(two);
  await chats.getByRole('button', { name: 'Rename To be renamed' }).click();
  await chats.getByLabel('New title').fill('Another title');
  await chats.getByRole('button', { name: 'Rename', exact: true }).click();
  const found = await untilStored((records) => {
    const found = began(records, 'To be renamed');
    return found.every(isAnswered) && found.some(({ title }) => title === 'Another title');
  });
  assert.deepEqual(began(found, 'To be renamed').map(({ title }) => title), ['Another title']);
});

step('a reload in the middle of an answer makes no copy', async () => {
  await askAnew(one, 'To be interrupted');
  await untilStored((records) => began(records, 'To be interrupted').every((record) => record.turns[0].answer.text !== '' || isAnswered(record)));
  await one.reload();
  await until(one, isUp);
  await send(one, 'And then?');
  const records = await untilStored((records) => began(records, 'To be interrupted').some((record) => questions(record).length === 2));
  assert.equal(began(records, 'To be interrupted').length, 1);
});

step('no console shows an error', () => {
  assertQuiet(browser);
});
