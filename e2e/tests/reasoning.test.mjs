// What a model thought is folded above its answer, also where an older page stored both as one text.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { anew, kitchen } from '../harness/hands.mjs';
import { conversation, openChat } from '../harness/stored.mjs';
import { endedAnswers, send } from '../harness/table.mjs';

const WRITTEN = '<think>\nIs it?\n</think>\n\nSoup is hot.';

const here = kitchen({ thinker: { text: WRITTEN } });
const inRoom = here.browser({ conversations: [conversation('Stored', [['Is soup hot?', WRITTEN]])] })('thinker');

/** The conversation's answer is drawn without what was thought, which one press unfolds. */
async function assertFolded(page, line) {
  const answer = endedAnswers(page).first();
  await answer.locator('.prose').getByText('Soup is hot.').waitFor();
  assert.equal((await answer.locator('.prose').textContent()).trim(), 'Soup is hot.');
  const [summary, thought] = ['.thinking summary', '.thinking p'].map((part) => answer.locator(part));
  assert.match(await summary.textContent(), line);
  assert.equal(await thought.isVisible(), false, 'it is folded');
  await summary.click();
  await thought.waitFor();
  assert.equal(await thought.textContent(), 'Is it?');
}

test('what a model thinks is folded above its answer', inRoom(async ({ page }) => {
  await anew(page);
  await send(page, 'Is soup hot?');
  await assertFolded(page, /^Reasoned for [\d.]+ m?s$/);
  await page.reload();
  await assertFolded(page, /^Reasoned for [\d.]+ m?s$/);
}));

test('what a model thought is found in an answer that an older page stored', inRoom(async ({ page }) => {
  await openChat(page, 'Stored');
  await assertFolded(page, /^Reasoning$/);
}));
