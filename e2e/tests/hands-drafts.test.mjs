// Long drafts: what is too long is said before it is sent, and no draft is ever lost.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, assertFits, drawn, kitchen, wide } from '../harness/hands.mjs';
import { endedAnswers, eventually, isUp, until } from '../harness/table.mjs';

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

const button = (page, name) => page.getByRole('button', { name, exact: true });
const meter = (page, text) => page.locator('.context-meter', { hasText: text });
/** A text of so many letters, none of which is trimmed. */
const letters = (start, count) => start.padEnd(count, ' soup').replace(/ $/, 's');

for (const viewport of WIDTHS) {
  test(`a message is counted before it is sent, and a full conversation goes on, ${viewport.width} pixels wide`, inSmallRoom(async ({ page }) => {
    await anew(page, viewport);
    const title = `First ${viewport.width}`;
    for (const [at, question] of [letters(title, 330), letters('Second', 60)].entries()) {
      await field(page).fill(question);
      await meter(page, /about \d+ of 512/).waitFor();
      await field(page).press('Enter');
      await eventually(() => endedAnswers(page).count(), (ended) => ended === at + 1, `${at + 1} answers`);
    }
    await meter(page, /^Context 4\d\d of 512$/).waitFor();
    const draft = letters('Third', 392);
    await field(page).fill(draft);
    await meter(page, /^Context 4\d\d \+ about 9\d of 512$/).waitFor();
    await page.getByText('This conversation is almost full.').waitFor();
    await assertFits(page);
    await button(page, 'New conversation with this message').click();
    await page.locator('.question').first().waitFor({ state: 'detached' });
    await eventually(() => page.evaluate(() => document.activeElement.getAttribute('aria-label')), (label) => label === 'Message', 'the message can be sent');
    assert.equal(await field(page).inputValue(), draft);
    assert.equal(await button(page, 'Leave the oldest turns out').count(), 0, 'here is room');
    await page.getByRole('button', { name: 'Chats', exact: true }).click();
    await page.getByRole('dialog', { name: 'Chats' }).locator('.chat-name', { hasText: title }).click();
    await button(page, 'Leave the oldest turns out').click();
    const mark = page.getByText('The model no longer sees the turns above.');
    await mark.waitFor();
    await drawn(page);
    assert.deepEqual(await wide(page), []);
    await field(page).press('Enter');
    await eventually(() => endedAnswers(page).count(), (ended) => ended === 3, 'it is answered');
    await meter(page, /^Context 4\d\d of 512$/).waitFor();
    await page.reload();
    await until(page, isUp);
    await mark.waitFor();
    assert.equal(await page.locator('.turn-left-out').count(), 1);
    // On a narrow screen, the button that leads to the end may lie over it.
    await button(page, 'Send it again').press('Enter');
    await mark.waitFor({ state: 'detached' });
  }));
}
