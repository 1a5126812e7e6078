// Long drafts: what is too long is said before it is sent, and no draft is ever lost.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, assertFits, drawn, kitchen } from '../harness/hands.mjs';
import { endedAnswers } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });
const inBrowser = here.browser();
const inSmallRoom = inBrowser('soup', { context: 512 });
// The model has a token for each byte: by the letters of most languages and models, the text of the test would fit.
const inLargeRoom = inBrowser('soup', { context: 16_384 });

const TOO_LONG = /about [\d,]+ tokens.* [\d,]+/i;
const field = (page) => page.getByRole('textbox', { name: 'Message' });
const said = (page) => page.locator('.composer-foot [role=status]');

/** Presses Enter; the draft stays in the field, and nothing is asked. */
async function assertRefused(page, draft) {
  const button = page.getByRole('button', { name: 'Send' });
  if (await button.isEnabled()) await button.click();
  await field(page).press('Enter');
  await drawn(page);
  assert.equal(await page.locator('.question').count(), 0, 'nothing is sent');
  const kept = await field(page).inputValue();
  assert.ok(kept === draft, `the draft of ${draft.length} characters stays: ${kept.length} are in the field`);
}

test('a draft that the context cannot hold is said to be too long, in a wide window and in a narrow one', inSmallRoom(async ({ page }) => {
  const words = Array.from({ length: 5000 }, (_, word) => `word${word}`).join(' ');
  await anew(page);
  for (const draft of [words, 'a'.repeat(900_000)]) {
    await field(page).fill(draft);
    for (const viewport of WIDTHS) {
      await page.setViewportSize(viewport);
      await said(page).filter({ hasText: TOO_LONG }).waitFor({ timeout: 60_000 });
      await assertRefused(page, draft);
      await assertFits(page);
    }
  }
  // What fits again is sent.
  await field(page).fill('A short one');
  await said(page).filter({ hasText: TOO_LONG }).waitFor({ state: 'detached' });
  await field(page).press('Enter');
  await endedAnswers(page).getByText('Soup is hot.').waitFor();
  assert.deepEqual(await page.locator('.question').allTextContents(), ['A short one']);
}));

for (const viewport of WIDTHS) {
  test(`a text that the room refuses comes back into the field, ${viewport.width} pixels wide`, inLargeRoom(async ({ page }) => {
    await anew(page, viewport);
    const draft = 'Soup. '.repeat(5000).trim();
    await field(page).fill(draft);
    await field(page).press('Enter');
    await drawn(page);
    // It was sent, or it is refused at once.
    if ((await page.locator('.question').count()) > 0) await page.locator('.answer-running').waitFor({ state: 'detached' });
    await drawn(page);
    const kept = await field(page).inputValue();
    assert.ok(kept === draft, `the draft of ${draft.length} characters is back: ${kept.length} are in the field`);
    await field(page).fill('A short one');
    await field(page).press('Enter');
    await endedAnswers(page).getByText('Soup is hot.').waitFor();
  }));
}
