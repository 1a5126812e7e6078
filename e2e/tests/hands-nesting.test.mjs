// Text that is nested deeper than any stack is drawn all the same, and what once stopped the page stops it no second time.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, kitchen, sees } from '../harness/hands.mjs';
import { chunks } from '../harness/reciting.mjs';
import { chooseOpen, conversation, openChat } from '../harness/stored.mjs';
import { endedAnswers, isUp, send, until } from '../harness/table.mjs';

const INNERMOST = /the innermost words/;
const indented = Array.from({ length: 250 }, (_, level) => `${'  '.repeat(level)}- level ${level}`).join('\n');
const TEXTS = {
  quotes: `${'>'.repeat(3000)} the innermost words`,
  apart: `${'> '.repeat(3000)}the innermost words`,
  nested: `${'- '.repeat(20_000)}the innermost words`,
  indented: `${indented}\n${'  '.repeat(250)}- the innermost words`,
};

const models = Object.entries(TEXTS).map(([name, text]) => [`deep-${name}`, { parts: chunks(text, 400) }]);
const here = kitchen({ ...Object.fromEntries(models), soup: { text: 'Soup is **hot**.' } });

const STOPPED = conversation('Stopped', [['First?', 'Soup is **hot**.'], ['Second?', 'Bread is **warm**.\n\n- and fresh']]);

const inRoom = here.browser({
  conversations: [STOPPED, ...Object.entries(TEXTS).map(([name, text]) => conversation(name, [[`${name}?`, text], ['And?', text]]))],
});

for (const name of Object.keys(TEXTS)) {
  test(`a model streams ${name}: the page goes on, and a reload shows the answer again`, inRoom(`deep-${name}`)(async (device) => {
    const { page } = device;
    for (const question of ['How deep?', 'How deep again?']) {
      await anew(page);
      await send(page, question);
      await sees(device, endedAnswers(page).getByText(INNERMOST));
    }
    await page.reload();
    await until(page, isUp);
    await page.locator('.question', { hasText: 'How deep again?' }).waitFor();
    await sees(device, endedAnswers(page).getByText(INNERMOST));
  }));
}

for (const viewport of WIDTHS) {
  test(`nested texts that were stored are shown, ${viewport.width} pixels wide`, inRoom('soup')(async (device) => {
    const { page } = device;
    await anew(page, viewport);
    for (const name of Object.keys(TEXTS)) {
      await openChat(page, name);
      await sees(device, page.locator('.answer').getByText(INNERMOST).nth(1));
    }
    await anew(page, viewport);
    await send(page, 'What is hot?');
    await sees(device, endedAnswers(page).getByText('Soup is hot.'));
  }));
}

test('an answer whose drawing stopped the page is shown as plain text, until it is to be drawn again', inRoom('soup')(async ({ page }) => {
  await anew(page);
  await chooseOpen(page, STOPPED.id);
  // A page that goes away in peace takes the mark back: it is there once the next one begins.
  await page.addInitScript((mark) => {
    if (sessionStorage.getItem('marked') === null) sessionStorage.setItem('potluck.drawing', mark);
    sessionStorage.setItem('marked', 'once');
  }, JSON.stringify([STOPPED.id, 1]));
  await page.reload();
  await until(page, isUp);
  const [first, second] = [0, 1].map((turn) => page.locator('.answer').nth(turn));
  await second.locator('.plain-answer').waitFor({ timeout: 30_000 });
  const plain = await second.locator('.plain-answer').textContent();
  assert.ok(plain.includes(STOPPED.turns[1].answer.text), `as it was written: ${plain}`);
  assert.equal(await second.locator('.prose').count(), 0);
  assert.equal(await first.locator('.prose strong').textContent(), 'hot', 'the other answers are drawn');
  await page.getByText('Formatting this answer froze the page, so it is shown as plain text.').waitFor();
  await page.getByRole('button', { name: 'Try formatting it again' }).click();
  await second.locator('.prose strong', { hasText: 'warm' }).waitFor();
  assert.equal(await second.locator('.plain-answer').count(), 0);
  // An answer that was drawn leaves no mark behind.
  await page.reload();
  await until(page, isUp);
  await second.locator('.prose strong', { hasText: 'warm' }).waitFor();
}));
