// Everything bad at once: thousands of conversations, a window as narrow as a thumb, Arabic, an answer that streams, and a
// screen reader that reads the page again and again.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { anew, kitchen } from '../harness/hands.mjs';
import { chooseOpen, conversation } from '../harness/stored.mjs';
import { answerBegins, endedAnswers, eventually, isUp, send, until } from '../harness/table.mjs';

const MANY = 10_000;
const arabic = 'الحساء ساخن جدا والخبز طازج، وكل من على المائدة يشارك بجهازه.';
const here = kitchen({
  endless: { text: `${`${arabic} `.repeat(6)}\n\n- ${arabic}\n- https://example.org/a_b(c)\n\n| حساء | خبز |\n|---|---|\n| ${arabic} | Donaudampfschifffahrt |\n\n`, loop: true },
});

/** Names of the buttons that are in the accessibility tree, read as a screen reader reads it. */
async function buttons(client) {
  const { nodes } = await client.send('Accessibility.getFullAXTree');
  return nodes.filter(({ ignored, role }) => !ignored && role?.value === 'button').map(({ name }) => name?.value ?? '');
}

/** Elements that reach out of the window sideways, but for those in a box that scrolls. */
const outside = (page) =>
  page.evaluate(() => {
    const scrolls = (element) => element.closest('.table-scroll, pre') !== null;
    const found = [];
    for (const element of document.querySelectorAll('body *')) {
      if (!element.checkVisibility() || scrolls(element.parentElement) || element.closest('svg, .visually-hidden')) continue;
      const { left, right, width } = element.getBoundingClientRect();
      if (width > 0 && (left < -1 || right > innerWidth + 1)) found.push(`${element.tagName}.${element.className} from ${Math.round(left)} to ${Math.round(right)}`);
    }
    return found.slice(0, 3);
  });

const sideways = (page) =>
  page.evaluate(() => [document.documentElement, ...document.querySelectorAll('dialog[open]')].map((element) => element.scrollWidth - element.clientWidth));

// A window of 640 pixels and one of 320, both at 200%.
const SIZES = [320, 160].map((width) => ({ width, height: width * 1.5 }));
/** One for each window: it is asked more there. */
const open = SIZES.map(({ width }) => conversation(`محادثة عن الحساء ${width}`, [[arabic, `${arabic}\n\n- ${arabic}`], ['و الخبز؟', arabic]]));
const others = Array.from({ length: MANY }, (_, index) => conversation(`Conversation ${index}`, [[`Question ${index}`, arabic]], `many-${index}`));

const inRoom = here.browser({ conversations: [...open, ...others], settings: { max_tokens: 8000 } })('endless', { context: 8192 });

for (const [at, viewport] of SIZES.entries()) {
  const { width } = viewport;
  test(`${MANY} conversations, ${width} pixels wide, an answer in Arabic, and a screen reader`, inRoom(async (device, context) => {
    const { page } = device;
    await anew(page, viewport);
    await chooseOpen(page, open[at].id);
    await page.reload();
    await until(page, isUp);
    const client = await device.context.newCDPSession(page);
    await send(page, 'ما هو الحساء؟');
    await answerBegins(page);
    for (let look = 0; look < 5; look += 1) {
      const names = await buttons(client);
      assert.ok(names.length > 3 && names.every((name) => name.trim() !== ''), `every button has a name: ${JSON.stringify(names)}`);
    }
    const isWide = width >= 320;
    if (isWide) {
      assert.deepEqual(await outside(page), []);
      assert.deepEqual(await sideways(page), [0]);
    }
    const begun = performance.now();
    await page.getByRole('button', { name: 'Chats' }).click();
    const drawer = page.getByRole('dialog', { name: 'Chats' });
    await drawer.getByRole('button', { name: `Conversation ${MANY - 1}`, exact: true }).or(drawer.getByRole('button', { name: open[at].title, exact: true })).first().waitFor();
    context.diagnostic(`the drawer takes ${Math.round(performance.now() - begun)} ms`);
    for (let look = 0; look < 3; look += 1) {
      const names = await buttons(client);
      assert.ok(names.length > 3 && names.every((name) => name.trim() !== ''), `every button of the drawer has a name: ${names.filter((name) => !name.trim()).length} have none`);
    }
    if (isWide) {
      assert.deepEqual(await outside(page), [], 'the drawer is in the window');
      assert.deepEqual(await sideways(page), [0, 0]);
    }
    // The keyboard gets out of it again.
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'hidden' });
    // Everything can be scrolled to and is covered by nothing.
    for (const name of ['Chats', 'New', 'Settings', 'Leave the room', 'Stop']) {
      await page.getByRole('button', { name, exact: true }).first().click({ trial: true });
    }
    await page.getByRole('textbox', { name: 'Message' }).click({ trial: true });
    await page.getByRole('button', { name: 'Stop' }).click();
    await eventually(() => endedAnswers(page).count(), (ended) => ended === 3, 'the answer has ended');
  }));
}
