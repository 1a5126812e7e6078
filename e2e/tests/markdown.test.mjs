// Markdown of all kinds, drawn by the real page as conversations that were stored: POTLUCK_TEXTS texts, or 2,000. Half of them
// are drawn on a wide screen and half on a narrow one.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, assertFits, kitchen, wide } from '../harness/hands.mjs';
import { markdown } from '../harness/markdown.mjs';
import { conversation, store } from '../harness/stored.mjs';
import { assertQuiet } from '../harness/table.mjs';

const TEXTS = Number(process.env.POTLUCK_TEXTS ?? 2000);
const FIRST = Number(process.env.POTLUCK_SEED ?? 1);
const TURNS = 50;
/** Conversations in one browser. */
const PORTION = 100;

const here = kitchen({ soup: { text: 'Soup is hot.' } });

const titled = (from) => `Texts from ${from}`;

/** The texts from a seed on, as a conversation. */
function ofTexts(from, end) {
  const turns = Array.from({ length: Math.min(TURNS, end - from) }, (_, turn) => [`Text ${from + turn}`, markdown(from + turn)]);
  return conversation(titled(from), turns, `texts-${from}`);
}

/** Opens a conversation and waits until its turns are drawn. Returns the milliseconds from the press to the frame. */
async function draw(page, title, last) {
  await page.getByRole('button', { name: 'Chats' }).click();
  const entry = page.getByRole('dialog', { name: 'Conversations' }).getByRole('button', { name: title, exact: true });
  await entry.evaluate((entry) => {
    entry.addEventListener('click', () => { window.pressed = performance.now(); }, { capture: true });
  });
  await entry.click();
  return page.evaluate(async (last) => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const isThere = () => Array.from(document.querySelectorAll('.question')).at(-1)?.textContent === last;
    do await frame(); while (!isThere());
    return performance.now() - window.pressed;
  }, last);
}

async function drawAll(context, viewport, first, end) {
  const times = [];
  for (let from = first; from < end; from += TURNS * PORTION) {
    const last = Math.min(end, from + TURNS * PORTION);
    const starts = Array.from({ length: Math.ceil((last - from) / TURNS) }, (_, at) => from + at * TURNS);
    const device = await here.start('reader', { viewport });
    const { page } = device;
    await store(page, here.relay, starts.map((start) => ofTexts(start, last)));
    await here.open(page, 'soup');
    for (const start of starts) {
      times.push(await draw(page, titled(start), `Text ${Math.min(start + TURNS, last) - 1}`));
      assert.deepEqual(device.errors, [], `the console is quiet about the texts from ${start}`);
      assert.deepEqual(await wide(page), [], `no text from ${start} is wider than its column`);
      await assertFits(page);
    }
    assertQuiet(device);
    await device.stop();
  }
  times.sort((one, other) => one - other);
  const [median, p99, most] = [0.5, 0.99, 1].map((share) => Math.round(times[Math.ceil(share * times.length) - 1]));
  context.diagnostic(`${times.length} conversations of ${TURNS} texts: median ${median} ms, p99 ${p99} ms, most ${most} ms`);
}

for (const [half, viewport] of WIDTHS.entries()) {
  const [first, end] = [half, half + 1].map((part) => FIRST + Math.floor((TEXTS * part) / 2));
  test(`${end - first} texts are drawn, ${viewport.width} pixels wide`, (context) => drawAll(context, viewport, first, end));
}
