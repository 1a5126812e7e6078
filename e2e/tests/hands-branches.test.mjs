// Questions that are edited, answers that are asked for again, turns that are deleted: nothing that was written is lost.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, kitchen, wide } from '../harness/hands.mjs';
import { chooseOpen, conversation, kept, openChat } from '../harness/stored.mjs';
import { endedAnswers, eventually, isUp, send, until } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' }, endless: { text: 'Soup is hot. ', loop: true } });
const OLD = conversation('Of an older page', [['Soup?', 'It is hot.'], ['Bread?', 'It is fresh.']]);
const browser = here.browser({ conversations: [OLD], settings: { max_tokens: 8000 } });
const inRoom = browser('soup');

const shown = (page) => page.locator('.question').allTextContents();
const button = (page, name) => page.getByRole('button', { name, exact: true });
const place = (page, of) => page.getByRole('group', { name: `Versions of the ${of}` }).getByRole('status');
const untilShown = (page, questions) => eventually(() => shown(page), (now) => JSON.stringify(now) === JSON.stringify(questions), `${questions} are shown`);
const untilAnswered = (page, count) => eventually(() => endedAnswers(page).count(), (ended) => ended === count, `${count} answers`);
const focused = (page) => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);

/** Edits the last question by keyboard alone. */
async function edit(page, text) {
  const press = button(page, 'Edit question').last();
  await press.focus();
  await page.keyboard.press('Enter');
  const field = page.getByRole('textbox', { name: 'Your question' });
  await field.waitFor();
  assert.equal(await focused(page), 'Your question', 'the field has the focus');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
  await field.waitFor({ state: 'detached' });
}

for (const viewport of WIDTHS) {
  test(`an edited question is a version beside the former one, ${viewport.width} pixels wide`, inRoom(async ({ page }) => {
    await anew(page, viewport);
    await send(page, 'Is soup hot?');
    await untilAnswered(page, 1);
    await send(page, 'And bread?');
    await untilAnswered(page, 2);
    await edit(page, 'And cake?');
    await untilShown(page, ['Is soup hot?', 'And cake?']);
    await untilAnswered(page, 2);
    assert.equal(await focused(page), 'Message', 'the next message can be written');
    assert.match(await place(page, 'question').textContent(), /Version 2 of 2/);
    await button(page, 'Former question').click();
    await untilShown(page, ['Is soup hot?', 'And bread?']);
    assert.equal(await focused(page), 'Former question', 'the focus stays');
    await page.reload();
    await until(page, isUp);
    await untilShown(page, ['Is soup hot?', 'And bread?']);
    await button(page, 'Next question').click();
    await untilShown(page, ['Is soup hot?', 'And cake?']);
  }));
}

test('a question that is left as it was gives the focus back', inRoom(async ({ page }) => {
  await anew(page);
  await send(page, 'Is soup hot?');
  await untilAnswered(page, 1);
  await button(page, 'Edit question').click();
  await page.getByRole('textbox', { name: 'Your question' }).fill('Something else');
  await page.keyboard.press('Escape');
  await untilShown(page, ['Is soup hot?']);
  assert.equal(await focused(page), 'Edit question');
}));

test('an answer that is asked for again is a version beside the former one', inRoom(async ({ page }) => {
  await anew(page);
  await send(page, 'Is soup hot?');
  await untilAnswered(page, 1);
  await button(page, 'Regenerate').click();
  await place(page, 'answer').waitFor();
  await untilAnswered(page, 1);
  assert.match(await place(page, 'answer').textContent(), /Version 2 of 2/);
  await button(page, 'Former answer').click();
  assert.match(await place(page, 'answer').textContent(), /Version 1 of 2/);
  assert.equal(await button(page, 'Former answer').getAttribute('aria-disabled'), 'true', 'there is none before it');
  await page.reload();
  await until(page, isUp);
  await place(page, 'answer').waitFor();
  assert.match(await place(page, 'answer').textContent(), /Version 1 of 2/, 'the version that was shown is shown again');
}));

test('a conversation of an older page opens as it was, and can be edited', inRoom(async ({ page }) => {
  await anew(page);
  await openChat(page, OLD.title);
  await untilShown(page, ['Soup?', 'Bread?']);
  await button(page, 'Edit question').first().click();
  await page.getByRole('textbox', { name: 'Your question' }).fill('Stew?');
  await button(page, 'Ask again').click();
  await untilShown(page, ['Stew?']);
  await untilAnswered(page, 1);
  await eventually(() => kept(page, 'conversations'), (records) => records.some(({ id, aside }) => id === OLD.id && aside?.length === 2), 'the former branch is stored');
  await button(page, 'Former question').click();
  await untilShown(page, ['Soup?', 'Bread?']);
}));

test('a turn is deleted, and what followed it stays', inRoom(async ({ page }) => {
  await anew(page);
  for (const [at, question] of ['One?', 'Two?', 'Three?'].entries()) {
    await send(page, question);
    await untilAnswered(page, at + 1);
  }
  page.once('dialog', (dialog) => dialog.accept());
  await button(page, 'Delete question and answer').nth(1).click();
  await untilShown(page, ['One?', 'Three?']);
  await page.reload();
  await until(page, isUp);
  await untilShown(page, ['One?', 'Three?']);
  for (const left of [['Three?'], []]) {
    page.once('dialog', (dialog) => dialog.accept());
    await button(page, 'Delete question and answer').first().click();
    await untilShown(page, left);
  }
  const records = await eventually(() => kept(page, 'conversations'), (records) => records.every(({ title }) => title !== 'One?'), 'a conversation without a turn is none');
  assert.ok(records.some(({ id }) => id === OLD.id), 'the others stay');
}));

test('a question is copied', inRoom(async ({ page }) => {
  await anew(page);
  await chooseOpen(page, OLD.id);
  await page.reload();
  await until(page, isUp);
  await button(page, 'Copy question').first().click();
  await button(page, 'Copied').waitFor();
  // The page may not read the clipboard: a person pastes.
  const message = page.getByRole('textbox', { name: 'Message' });
  await message.focus();
  await page.keyboard.press('Control+V');
  assert.match(await message.inputValue(), /^S(oup|tew)\?$/);
  await message.fill('');
}));

test('an answer stands beside another one, which takes its place', inRoom(async ({ page }) => {
  await anew(page);
  await send(page, 'Is soup hot?');
  await untilAnswered(page, 1);
  await button(page, 'Write another answer beside this one').click();
  const beside = page.getByRole('region', { name: 'Another answer to the same question' });
  await beside.locator('.prose').getByText('Soup is hot.').waitFor();
  await untilAnswered(page, 2);
  assert.match(await place(page, 'answer').textContent(), /Version 1 of 2/);
  await beside.getByRole('button', { name: 'Use this answer' }).click();
  await untilAnswered(page, 1);
  assert.match(await place(page, 'answer').textContent(), /Version 2 of 2/);
  await button(page, 'Compare with another version').click();
  await untilAnswered(page, 2);
  await beside.getByRole('button', { name: 'Close the comparison' }).click();
  await untilAnswered(page, 1);
}));

for (const viewport of WIDTHS) {
  test(`two answers are written at once, and stopped together, ${viewport.width} pixels wide`, browser('endless', { context: 16_384 })(async ({ page }) => {
    await anew(page, viewport);
    await button(page, 'Answers in this conversation').click();
    const fields = page.getByRole('dialog', { name: 'Answers in this conversation' });
    await fields.getByRole('switch', { name: /^Two answers side by side/ }).check();
    await page.keyboard.press('Escape');
    await fields.waitFor({ state: 'hidden' });
    await send(page, 'Is soup hot?');
    const lengths = () => page.locator('.answer-running .prose').evaluateAll((all) => all.map((prose) => prose.textContent.length));
    const both = await eventually(lengths, (lengths) => lengths.length === 2 && lengths.every((length) => length > 20), 'both have words');
    await eventually(lengths, (lengths) => lengths.length === 2 && lengths.every((length, at) => length > both[at]), 'both grow');
    assert.deepEqual(await wide(page), []);
    const [left, right] = await page.locator('.answer-pair > *').evaluateAll((all) => all.map((part) => part.getBoundingClientRect().toJSON()));
    if (viewport.width > 1000) assert.ok(right.left >= left.right && Math.abs(right.top - left.top) < 2, 'they are side by side');
    else assert.ok(right.top >= left.bottom, 'one is below the other');
    await button(page, 'Stop').click();
    await untilAnswered(page, 2);
    await page.reload();
    await until(page, isUp);
    await untilAnswered(page, 1);
    assert.match(await place(page, 'answer').textContent(), /Version 1 of 2/, 'both are kept');
  }));
}
