// A message that is sent while an answer is written waits for its end, and a press leads to the end of a long conversation.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, kitchen } from '../harness/hands.mjs';
import { conversation, openChat } from '../harness/stored.mjs';
import { answerBegins, endedAnswers, eventually, isUp, send, until } from '../harness/table.mjs';

const LONG = Array.from({ length: 40 }, (_, line) => `Line ${line} of a long answer.`).join('\n\n');
const here = kitchen({ endless: { text: 'The soup is hot and the bread is fresh. ', loop: true } });
const inRoom = here.browser({ conversations: [conversation('Long', [['Long?', LONG]])], settings: { max_tokens: 4000 } })('endless', { context: 8192 });

const field = (page) => page.getByRole('textbox', { name: 'Message' });
const button = (page, name) => page.getByRole('button', { name, exact: true });
const waiting = (page) => page.getByRole('list', { name: 'Questions that wait' }).getByRole('listitem');
const untilAsked = (page, questions) =>
  eventually(() => page.locator('.question').allTextContents(), (now) => now.join() === questions.join(), `${questions} are asked`);

for (const viewport of WIDTHS) {
  test(`a message waits for the end of the answer, ${viewport.width} pixels wide`, inRoom(async ({ page }) => {
    await anew(page, viewport);
    await send(page, 'First?');
    await answerBegins(page);
    await field(page).fill('Second?');
    await field(page).press('Enter');
    assert.equal(await field(page).inputValue(), '', 'it has left the field');
    await field(page).fill('Third?');
    await button(page, 'Ask next').click();
    await eventually(() => waiting(page).count(), (count) => count === 2, 'both wait');
    await button(page, 'Take back').last().click();
    await eventually(() => field(page).inputValue(), (text) => text === 'Third?', 'it is back in the field');
    await untilAsked(page, ['First?']);
    await button(page, 'Stop').click();
    await untilAsked(page, ['First?', 'Second?']);
    await waiting(page).first().waitFor({ state: 'detached' });
    await button(page, 'Stop').click();
    await eventually(() => endedAnswers(page).count(), (ended) => ended === 2, 'both have ended');
    await field(page).fill('');
  }));
}

test('what waits outlives a reload', inRoom(async ({ page }) => {
  await anew(page);
  await send(page, 'First?');
  await answerBegins(page);
  await field(page).fill('Second?');
  await field(page).press('Enter');
  await waiting(page).first().waitFor();
  await page.reload();
  await until(page, isUp);
  await untilAsked(page, ['First?', 'Second?']);
  await button(page, 'Stop').click();
}));

test('a press leads to the end', inRoom(async ({ page }) => {
  await anew(page);
  await openChat(page, 'Long');
  const end = page.getByText('Line 39 of a long answer.');
  await end.waitFor();
  await button(page, 'Jump to the end').waitFor({ state: 'detached' });
  // At once: a key's scrolling glides on for a while.
  await page.getByRole('log').evaluate((log) => log.scrollTo({ top: 0, behavior: 'instant' }));
  await button(page, 'Jump to the end').click();
  await button(page, 'Jump to the end').waitFor({ state: 'detached' });
  const inView = await end.evaluate((end) => end.getBoundingClientRect().bottom <= document.querySelector('.turns').getBoundingClientRect().bottom);
  assert.ok(inView, 'the end is in view');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'log', 'the focus is in the conversation');
}));
