// The page is as tall as its window and no wider, whatever a conversation holds.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, assertFits, drawn, kitchen, wide } from '../harness/hands.mjs';
import { conversation, openChat } from '../harness/stored.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });

const LONG = ['Donaudampfschifffahrt', 'incomprehensibilities', 'Kraftfahrzeughaftpflicht', 'uncharacteristically', 'Rindfleischetikettierung'];
/** A table whose cells are single words. */
const table = (columns) => {
  const row = (at) => `| ${Array.from({ length: columns }, (_, column) => LONG[(at + column) % LONG.length]).join(' | ')} |`;
  return [row(0), `|${'---|'.repeat(columns)}`, ...[1, 2, 3].map(row)].join('\n');
};
/** A title for each width: it is renamed. */
const withoutBlanks = (width) => `${width}${'Unbreakable'.repeat(20)}`.slice(0, 200);
const TEN = Array.from({ length: 10 }, (_, turn) => [`Question ${turn}`, `Answer ${turn}\n\n- with an item`]);
const COLUMNS = [5, 30];

const inRoom = here.browser({
  conversations: [
    conversation('Ten', TEN),
    ...WIDTHS.map(({ width }) => conversation(withoutBlanks(width), [['Why?', 'So.']])),
    ...COLUMNS.map((columns) => conversation(`Table of ${columns}`, [['A table?', `Here it is:\n\n${table(columns)}\n\nThat was it.`]])),
  ],
})('soup');

for (const viewport of WIDTHS) {
  test(`ten turns leave the page as tall as its window, ${viewport.width} pixels wide`, inRoom(async ({ page }) => {
    await anew(page, viewport);
    await openChat(page, 'Ten');
    await page.locator('.question').nth(9).waitFor();
    await drawn(page);
    await assertFits(page);
    const header = await page.locator('.room-top').boundingBox();
    await page.evaluate(() => {
      window.wheels = 0;
      window.onwheel = () => { window.wheels += 1; };
    });
    await page.mouse.move(header.x + header.width / 2, header.y + header.height / 2);
    for (let turn = 1; turn <= 3; turn += 1) {
      await page.mouse.wheel(0, 600);
      await page.waitForFunction((turn) => window.wheels >= turn, turn);
      await drawn(page);
    }
    assert.equal(await page.evaluate(() => window.scrollY), 0, 'the page does not scroll');
    assert.deepEqual(await page.locator('.room-top').boundingBox(), header, 'the header stays');
  }));

  test(`a long title leaves its buttons in the drawer, ${viewport.width} pixels wide`, inRoom(async ({ page }) => {
    const [title, short] = [withoutBlanks(viewport.width), `Short ${viewport.width}`];
    await anew(page, viewport);
    await page.getByRole('button', { name: 'Chats' }).click();
    const drawer = page.getByRole('dialog', { name: 'Chats' });
    for (const verb of ['Rename', 'Delete']) {
      const button = drawer.getByRole('button', { name: `${verb} ${title}`, exact: true });
      await button.waitFor();
      const [inner, outer] = [await button.boundingBox(), await drawer.boundingBox()];
      const inside = inner.x >= outer.x && inner.x + inner.width <= Math.min(outer.x + outer.width, viewport.width);
      assert.ok(inside, `${verb} is in the drawer: ${JSON.stringify({ inner, outer })}`);
      assert.ok(inner.width >= 24 && inner.height >= 24, `${verb} can be pressed: ${JSON.stringify(inner)}`);
    }
    assert.equal(await drawer.evaluate((drawer) => drawer.scrollWidth - drawer.clientWidth), 0, 'the drawer does not scroll sideways');
    await drawer.getByRole('button', { name: `Rename ${title}`, exact: true }).click();
    await drawer.getByLabel('New title').fill(short);
    await drawer.getByRole('button', { name: 'Rename', exact: true }).click();
    await drawer.getByRole('button', { name: short, exact: true }).click();
    // The title stands above the conversation, too.
    await page.locator('.chat-title', { hasText: short }).waitFor();
  }));

  for (const columns of COLUMNS) {
    test(`a table of ${columns} columns scrolls in its own box, ${viewport.width} pixels wide`, inRoom(async ({ page }) => {
      await anew(page, viewport);
      await openChat(page, `Table of ${columns}`);
      const box = page.locator('.table-scroll');
      await box.waitFor();
      await drawn(page);
      const broken = await box.locator('th, td').evaluateAll((cells) => {
        const range = document.createRange();
        const lines = (cell) => {
          range.selectNodeContents(cell);
          return new Set(Array.from(range.getClientRects(), ({ top }) => Math.round(top))).size;
        };
        return cells.filter((cell) => lines(cell) !== 1).map((cell) => `${cell.textContent} on ${lines(cell)} lines`);
      });
      assert.deepEqual(broken.slice(0, 3), [], 'no word is broken');
      const width = await box.evaluate((box) => ({ all: box.scrollWidth, shown: box.clientWidth, right: box.getBoundingClientRect().right }));
      if (columns * 200 > viewport.width * 2) assert.ok(width.all > width.shown, `the table scrolls: ${JSON.stringify(width)}`);
      const column = await page.locator('.turns-column').boundingBox();
      assert.ok(width.right <= column.x + column.width + 1, `its box is in the column: ${JSON.stringify({ width, column })}`);
      assert.deepEqual(await wide(page), []);
      const sideways = await page.evaluate(() => [document.documentElement, document.querySelector('.turns')].map((element) => element.scrollWidth - element.clientWidth));
      assert.deepEqual(sideways, [0, 0], 'nothing else scrolls sideways');
      await assertFits(page);
    }));
  }
}
