// Everything can be reached and seen: by the keyboard alone, on a narrow screen, and while something is told.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { assertQuiet, host, isUp, until } from '../harness/table.mjs';

const WIDTHS = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
];

let relay;
let device;

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
});

afterEach(async () => {
  await device?.stop();
  device = null;
});

after(async () => {
  await relay?.stop();
});

/** Waits until the focus is on what has this text: it moves in the frame after the place has changed. */
const focusComesTo = async (page, text, why) => {
  const isThere = (source) => new RegExp(source).test(document.activeElement.ariaLabel ?? document.activeElement.textContent);
  await page.waitForFunction(isThere, text.source).catch(() => {});
  assert.ok(await page.evaluate(isThere, text.source), `${why}: not on ${text}`);
};
/** Pixels by which what is shown is wider than its window or its dialog. */
const sideways = (page) =>
  page.evaluate(() => {
    const scrolls = [document.documentElement, ...document.querySelectorAll('dialog[open]')];
    return Math.max(...scrolls.map((element) => element.scrollWidth - element.clientWidth));
  });
const press = async (page, name) => {
  await page.getByRole('button', { name }).first().focus();
  await page.keyboard.press('Enter');
};

for (const viewport of WIDTHS) {
  test(`by the keyboard from the door to a table and back, ${viewport.width} pixels wide`, async () => {
    device = await Device.start('keyboard', { viewport, colorScheme: 'dark' });
    const { page } = device;
    await page.goto(relay.url);
    await page.getByRole('button', { name: 'Host a model' }).waitFor();
    assert.equal(await sideways(page), 0, 'the door');

    await press(page, 'Host a model');
    const open = page.locator('button:enabled', { hasText: 'Open the room' });
    await open.waitFor();
    for (const tab of ['Link', 'This device', 'This relay']) {
      await page.getByRole('tab', { name: tab }).click();
      assert.equal(await sideways(page), 0, `the picker, ${tab}`);
    }
    await page.keyboard.press('Escape');
    await focusComesTo(page, /^Host a model/, 'a dialog gives the focus back');

    await press(page, 'Host a model');
    await open.focus();
    await page.keyboard.press('Enter');
    await until(page, isUp);
    await focusComesTo(page, /^Potluck$/, 'the focus is on the heading of the new place');
    assert.equal(await sideways(page), 0, 'the room');
    for (const name of ['Settings', 'Chats']) {
      await press(page, name);
      await page.getByRole('dialog').waitFor();
      assert.equal(await sideways(page), 0, name);
      await page.keyboard.press('Escape');
      await focusComesTo(page, new RegExp(`^${name}$`), 'a dialog gives the focus back');
    }
    await press(page, 'Leave the room');
    await page.getByRole('dialog').waitFor();
    assert.equal(await sideways(page), 0, 'the question to a host that leaves');
    await press(page, 'End the room');
    await page.getByRole('button', { name: 'Host a model' }).waitFor();
    await focusComesTo(page, /^Potluck$/, 'the focus is on the heading of the door');
    assertQuiet(device);
  });

  test(`what is told covers nothing, ${viewport.width} pixels wide`, async () => {
    device = await Device.start('told', { viewport });
    const { page } = device;
    await host(page, relay);
    await until(page, isUp);
    device.killGpu();
    await page.locator('.notice').first().waitFor();
    const at = await page.evaluate(() => {
      const box = (selector) => document.querySelector(selector).getBoundingClientRect();
      return { told: box('.notices').bottom, top: box('.room-top').top, composer: box('textarea').bottom, window: innerHeight };
    });
    assert.ok(at.top >= at.told, `the room begins below it: ${JSON.stringify(at)}`);
    assert.ok(at.composer <= at.window, `the message box is still in the window: ${JSON.stringify(at)}`);
    // It goes by itself once the GPU is open again.
    await page.getByRole('button', { name: 'Dismiss' }).click({ timeout: 10_000 }).catch(() => {});
    await page.locator('.notice').waitFor({ state: 'detached' });
  });
}

test('a table that is closed says so once', async () => {
  device = await Device.start('closed');
  const { page } = device;
  await page.goto(`${relay.url}/r/nosuchroom234567nosuchroom#CQkJCQkJCQkJCQkJCQkJCQ`);
  await page.getByRole('button', { name: 'Just chat' }).click();
  await page.getByRole('heading', { name: 'You are not in this room' }).waitFor();
  await page.getByRole('alert').getByText(/does not exist any more/).waitFor();
  assert.equal(await page.locator('.notice').count(), 0, 'the card tells it');
});
