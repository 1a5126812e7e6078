// The keyboard means what a person means by it: with an input method, with a key that is held, with characters in halves.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, drawn, kitchen } from '../harness/hands.mjs';
import { answerBegins, endedAnswers, eventually, send } from '../harness/table.mjs';

const soup = Array.from({ length: 50 }, (_, number) => `Soup number ${number} is served.`).join(' ');
const here = kitchen({ soup: { text: 'Soup is hot.' }, endless: { text: `${soup}\n\n`, loop: true } });

const field = (page) => page.getByRole('textbox', { name: 'Message' });
const questions = (page) => page.locator('.question').allTextContents();

/** Dispatches a key as an input method does: with the key code 229 or with `isComposing`. */
const dispatchKey = (page, key, init) =>
  field(page).evaluate((field, [key, init]) => {
    field.dispatchEvent(new KeyboardEvent('keydown', { key, code: key, bubbles: true, cancelable: true, ...init }));
  }, [key, init]);

const inBrowser = here.browser({ settings: { max_tokens: 8000 } });
const inRoom = inBrowser('soup');
/** A room in which answers never end. */
const inEndlessRoom = inBrowser('endless', { context: 8192 });

const shown = (page) => page.locator('.answer .prose').first().evaluate((prose) => prose.textContent.length);
/** The answer goes on: much more of it comes. */
async function assertGoesOn(page, why) {
  const before = await shown(page);
  const now = () => page.evaluate(() => ({ ended: document.querySelectorAll('.answer:not(.answer-running)').length, length: document.querySelector('.answer .prose').textContent.length }));
  const { ended } = await eventually(now, ({ ended, length }) => ended > 0 || length > before + 300);
  assert.equal(ended, 0, why);
}

for (const viewport of WIDTHS) {
  test(`Escape closes what an input method shows and stops no answer, ${viewport.width} pixels wide`, inEndlessRoom(async ({ context, page }) => {
    await anew(page, viewport);
    await send(page, 'Tell me.');
    await answerBegins(page);
    await field(page).focus();
    await dispatchKey(page, 'Escape', { isComposing: true });
    await assertGoesOn(page, 'Escape while composing');
    await dispatchKey(page, 'Escape', { keyCode: 229 });
    await assertGoesOn(page, 'Escape with the key code of an input method');
    // As Chromium itself reports it.
    const keys = await page.evaluateHandle(() => {
      const keys = [];
      window.addEventListener('keydown', (event) => keys.push([event.key, event.isComposing]), { capture: true });
      return keys;
    });
    const client = await context.newCDPSession(page);
    await client.send('Input.imeSetComposition', { text: 'にほん', selectionStart: 3, selectionEnd: 3 });
    await page.keyboard.press('Escape');
    assert.deepEqual(await keys.jsonValue(), [['Escape', true]]);
    await assertGoesOn(page, 'Escape that ends a composition');
    await client.send('Input.insertText', { text: '日本' });
    await page.keyboard.press('Escape');
    await endedAnswers(page).first().waitFor();
    assert.match(await field(page).inputValue(), /日本/, 'the draft stays');
    await field(page).fill('');
  }));
}

for (const viewport of WIDTHS) {
  test(`Enter chooses what an input method offers, and then sends, ${viewport.width} pixels wide`, inRoom(async ({ context, page }) => {
    await anew(page, viewport);
    await field(page).focus();
    const client = await context.newCDPSession(page);
    await client.send('Input.imeSetComposition', { text: 'にほん', selectionStart: 3, selectionEnd: 3 });
    await page.keyboard.press('Enter');
    await client.send('Input.insertText', { text: '日本' });
    // Safari ends the composition first and then reports the key.
    await dispatchKey(page, 'Enter', { keyCode: 229, isComposing: false });
    await dispatchKey(page, 'Enter', { isComposing: true });
    await drawn(page);
    const draft = await field(page).inputValue();
    assert.match(draft, /日本/);
    assert.deepEqual(await questions(page), [], 'nothing is sent yet');
    await page.keyboard.press('Enter');
    await endedAnswers(page).first().waitFor();
    assert.deepEqual(await questions(page), [draft.trim()]);
    assert.equal(await field(page).inputValue(), '');
  }));
}

test('a held Enter sends once', inRoom(async ({ page }) => {
  await anew(page);
  await field(page).fill('One');
  await page.keyboard.down('Enter');
  await endedAnswers(page).first().waitFor();
  // The key is still down, and the answer is over.
  await field(page).evaluate((field) => {
    field.value = 'Two';
    field.dispatchEvent(new InputEvent('input', { bubbles: true }));
  });
  for (let repeat = 0; repeat < 5; repeat += 1) await page.keyboard.down('Enter');
  await drawn(page);
  assert.deepEqual(await questions(page), ['One']);
  await page.keyboard.up('Enter');
  assert.equal((await field(page).inputValue()).trim(), 'Two', 'the draft stays');
  await page.keyboard.press('Enter');
  await endedAnswers(page).nth(1).waitFor();
  assert.deepEqual(await questions(page), ['One', 'Two']);
}));

test('Shift and Enter begin a new line', inRoom(async ({ page }) => {
  await anew(page, WIDTHS[1]);
  await field(page).focus();
  await page.keyboard.type('One');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('Two');
  assert.equal(await field(page).inputValue(), 'One\nTwo');
  await page.keyboard.press('Enter');
  await endedAnswers(page).first().waitFor();
  assert.deepEqual(await questions(page), ['One\nTwo']);
}));

test('an emoji that arrives in two halves is sent whole', inRoom(async ({ page }) => {
  await anew(page);
  // Windows' panel of emoji types the two halves one after another.
  const type = (half) =>
    field(page).evaluate((field, half) => {
      const native = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value');
      native.set.call(field, native.get.call(field) + String.fromCharCode(half));
      field.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertText' }));
    }, half);
  await field(page).fill('Smile ');
  await type(0xd83d);
  await drawn(page);
  await type(0xde00);
  await drawn(page);
  assert.equal(await field(page).inputValue(), 'Smile 😀');
  await page.getByRole('button', { name: 'Send' }).click();
  await endedAnswers(page).first().waitFor();
  assert.deepEqual(await questions(page), ['Smile 😀']);
}));
