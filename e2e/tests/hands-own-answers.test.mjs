// Instructions and sampling of one conversation: they apply there and nowhere else, and stay with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, drawn, kitchen, wide } from '../harness/hands.mjs';
import { openChat } from '../harness/stored.mjs';
import { endedAnswers, eventually, isUp, send, until } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });
const inRoom = here.browser({ settings: { instructions: 'Rhyme.', sampling: { temperature: 0.5 } } })('soup');

const button = (within, name) => within.getByRole('button', { name, exact: true });
const mark = (page) => page.locator('.own-answers');

/** The drawer, opened from the conversation. */
async function drawer(page) {
  await button(page, 'Answers in this conversation').click();
  return page.getByRole('dialog', { name: 'Answers in this conversation' });
}

/** Asks, and returns the tokens of context that the conversation takes then. */
async function ask(page, question) {
  const before = await endedAnswers(page).count();
  await send(page, question);
  await eventually(() => endedAnswers(page).count(), (ended) => ended > before, `${question} is answered`);
  const meter = await page.locator('.context-meter').textContent();
  return Number(meter.match(/Context ([\d,]+) of/)[1].replace(',', ''));
}

for (const viewport of WIDTHS) {
  test(`a conversation has its own instructions and sampling, ${viewport.width} pixels wide`, inRoom(async ({ page }) => {
    await anew(page, viewport);
    const title = `Of soup, ${viewport.width} pixels`;
    let fields = await drawer(page);
    assert.equal(await fields.getByLabel('Instructions for this conversation').inputValue(), 'Rhyme.', 'at first as everywhere');
    assert.ok(await button(fields, 'Use the general settings').isDisabled());
    await fields.getByLabel('Instructions for this conversation').fill('Say it with soup. '.repeat(20));
    await fields.getByLabel('Maximum answer length').fill('1');
    await fields.getByLabel('Save these as a character').fill('Cook');
    await button(fields, 'Save').click();
    await eventually(() => fields.getByLabel('Saved characters').inputValue(), (name) => name === 'Cook', 'it is saved, and in use');
    await page.keyboard.press('Escape');
    await fields.waitFor({ state: 'hidden' });
    await mark(page).getByText('Own instructions and sampling').waitFor();
    await page.reload();
    await until(page, isUp);
    await mark(page).waitFor();
    const long = await ask(page, title);
    await page.getByText('The answer reached its length limit.').waitFor();
    await drawn(page);
    assert.deepEqual(await wide(page), []);
    await anew(page, viewport);
    assert.equal(await mark(page).count(), 0, 'the next conversation is like all others');
    const short = await ask(page, 'And bread?');
    assert.equal(await page.getByText('The answer reached its length limit.').count(), 0);
    assert.ok(long > short + 40, `the model got the instructions: ${long} tokens, and ${short} without`);
    await page.reload();
    await until(page, isUp);
    await openChat(page, title);
    await mark(page).getByRole('button').click();
    fields = page.getByRole('dialog', { name: 'Answers in this conversation' });
    assert.equal(await fields.getByLabel('Maximum answer length').inputValue(), '1');
    await button(fields, 'Use the general settings').click();
    await fields.locator('option:checked', { hasText: 'Choose one' }).waitFor({ state: 'attached' });
    await fields.getByLabel('Saved characters').selectOption('Cook');
    await eventually(() => fields.getByLabel('Maximum answer length').inputValue(), (length) => length === '1', 'it is used again');
    await button(fields, 'Forget').click();
    await fields.getByLabel('Saved characters').waitFor({ state: 'detached' });
    await button(fields, 'Use the general settings').click();
    assert.equal(await fields.getByLabel('Instructions for this conversation').inputValue(), 'Rhyme.');
    assert.equal(await fields.getByLabel(/^Temperature/).inputValue(), '0.5');
    await button(fields, 'Close').click();
    await mark(page).waitFor({ state: 'detached' });
  }));
}
