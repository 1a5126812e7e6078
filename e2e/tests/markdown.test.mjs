// Markdown of all kinds, drawn by the real page as conversations that were stored: POTLUCK_TEXTS texts, or 600. Half of them
// are drawn on a wide screen and half on a narrow one.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, assertFits, kitchen, wide } from '../harness/hands.mjs';
import { markdown } from '../harness/markdown.mjs';
import { conversation, store } from '../harness/stored.mjs';
import { assertQuiet } from '../harness/table.mjs';

const TEXTS = Number(process.env.POTLUCK_TEXTS ?? 600);
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
  const entry = page.getByRole('dialog', { name: 'Chats' }).getByRole('button', { name: title, exact: true });
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

/** Draws conversations that begin with these texts, and checks each. Returns the milliseconds that each took. */
async function drawAll(device, viewport, starts, end) {
  const { page } = device;
  const times = [];
  await page.setViewportSize(viewport);
  for (const start of starts) {
    times.push(await draw(page, titled(start), `Text ${Math.min(start + TURNS, end) - 1}`));
    assert.deepEqual(device.errors, [], `the console is quiet about the texts from ${start}`);
    assert.deepEqual(await wide(page), [], `no text from ${start} is wider than its column of ${viewport.width} pixels`);
    await assertFits(page);
  }
  return times;
}

/** What was measured, in words. */
function told({ width }, times) {
  times.sort((one, other) => one - other);
  const [median, p99, most] = [0.5, 0.99, 1].map((share) => Math.round(times[Math.ceil(share * times.length) - 1]));
  return `${times.length} conversations of ${TURNS} texts, ${width} pixels wide: median ${median} ms, p99 ${p99} ms, most ${most} ms`;
}

test(`${TEXTS} texts are drawn, half of them ${WIDTHS.map(({ width }) => width).join(' and half of them ')} pixels wide`, async (context) => {
  const times = WIDTHS.map(() => []);
  for (let from = FIRST; from < FIRST + TEXTS; from += TURNS * PORTION) {
    const end = Math.min(FIRST + TEXTS, from + TURNS * PORTION);
    const starts = Array.from({ length: Math.ceil((end - from) / TURNS) }, (_, at) => from + at * TURNS);
    const device = await here.start('reader');
    await store(device.page, here.relay, starts.map((start) => ofTexts(start, end)));
    await here.open(device.page, 'soup');
    const half = Math.ceil(starts.length / 2);
    for (const [at, part] of [starts.slice(0, half), starts.slice(half)].entries()) {
      times[at].push(...(await drawAll(device, WIDTHS[at], part, end)));
    }
    assertQuiet(device);
    await device.stop();
  }
  for (const [at, viewport] of WIDTHS.entries()) context.diagnostic(told(viewport, times[at]));
});
