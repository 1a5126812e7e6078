// What the tests of the page's hands share: the two widths, rooms with a model that recites, what is measured.
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before } from 'node:test';

import { Device } from './browser.mjs';
import { write } from './reciting.mjs';
import { Relay } from './relay.mjs';
import { set, store } from './stored.mjs';
import { assertQuiet, eventually, host, isUp, until } from './table.mjs';

export const WIDTHS = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
];

/** Sets a test file up: a relay that has these reciting models (name: what it recites), devices that stop after each test, and
 * those that its tests share. */
export function kitchen(models) {
  const folder = mkdtempSync(join(tmpdir(), 'potluck-recitals-'));
  const devices = [];
  const closing = [];
  const here = { folder, relay: null };
  before(async () => {
    for (const [name, recital] of Object.entries(models)) write(join(folder, `${name}.gguf`), { name, ...recital });
    here.relay = await Relay.start({ models: folder });
  });
  afterEach(async () => {
    for (const device of devices.splice(0)) await device.stop();
  });
  after(async () => {
    for (const close of closing) await close();
    await here.relay?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  here.start = async (name, options) => {
    const device = await Device.start(name, options);
    devices.push(device);
    return device;
  };
  /** Opens a room with one of the models. Returns its link. */
  here.open = async (page, model, options) => {
    const link = await host(page, here.relay, { model, ...options });
    await until(page, isUp);
    return link;
  };
  /**
   * Devices and rooms for several tests, because a browser and a room take seconds. `open` makes them for the first test, and
   * anew for the one after a test that failed. Returns what makes a test of a function of them; it finds the page as the last
   * test left it, and all consoles quiet.
   */
  here.shared = (open) => {
    const kept = [];
    let held = null;
    const close = async () => {
      held = null;
      for (const device of kept.splice(0)) await device.stop();
    };
    closing.push(close);
    return (act) => async (context) => {
      held ??= await open();
      kept.push(...devices.splice(0));
      const shared = held;
      held = null;
      try {
        await act(shared, context);
        assertQuiet(...kept);
        held = shared;
      } finally {
        if (held === null) await close();
      }
    };
  };
  /**
   * One browser for several tests, with these conversations and settings. Returns what makes a test of a function of the device:
   * `inRoom(model, options)(act)`. The room stays open for the next test that is in it.
   */
  here.browser = ({ conversations = [], settings } = {}) => {
    const withDevice = here.shared(async () => {
      const device = await here.start('host');
      if (conversations.length > 0) await store(device.page, here.relay, conversations);
      if (settings) await set(device.page, here.relay, settings);
      return { device, room: null };
    });
    return (model, options) => {
      const room = JSON.stringify([model, options]);
      return (act) => withDevice(async (held, context) => {
        if (held.room !== room) await here.open(held.device.page, model, options);
        held.room = room;
        await act(held.device, context);
      });
    };
  };
  return here;
}

/** A new conversation in a window of this size. */
export async function anew(page, viewport = WIDTHS[0]) {
  await page.setViewportSize(viewport);
  const button = page.getByRole('button', { name: 'New', exact: true });
  if (await button.isEnabled()) await button.click();
  await page.locator('.question').first().waitFor({ state: 'detached' });
}

/** The page is no taller than its window. */
export async function assertFits(page) {
  const { height, window } = await page.evaluate(() => ({ height: document.documentElement.scrollHeight, window: innerHeight }));
  assert.ok(height <= window, `the document has ${height} pixels, its window ${window}`);
}

/** Waits until something is seen, unless the console shows an error. */
export async function sees(device, wanted) {
  const now = async () => ({ seen: await wanted.first().isVisible(), errors: device.errors });
  await eventually(now, ({ seen, errors }) => seen || errors.length > 0, String(wanted));
  assertQuiet(device);
}

/** Two frames: what was changed before is laid out. */
export const drawn = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Words of the conversation that reach out of its column, outside of what scrolls. White space may hang out of it. */
export const wide = (page) =>
  page.evaluate(() => {
    const column = document.querySelector('.turns-column').getBoundingClientRect();
    const texts = document.createTreeWalker(document.querySelector('.turns-column'), NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const place = () => {
      const { left, right } = range.getBoundingClientRect();
      return { from: Math.round(left - column.left), to: Math.round(right - column.left) };
    };
    const reachesOut = () => place().from < -1 || place().to > column.width + 1;
    const found = [];
    while (texts.nextNode()) {
      const node = texts.currentNode;
      if (!node.data.trim() || node.parentElement.closest('.table-scroll, .formula-block, .formula-long, pre')) continue;
      range.selectNodeContents(node);
      if (!reachesOut()) continue;
      for (const word of node.data.matchAll(/\S+/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (!reachesOut()) continue;
        const turn = node.parentElement.closest('.turn')?.querySelector('.question').textContent.slice(0, 40);
        found.push(`${turn}: ${place().from} to ${place().to} of ${Math.round(column.width)} pixels: ${word[0].slice(0, 80)}`);
        break;
      }
    }
    return found.slice(0, 5);
  });
