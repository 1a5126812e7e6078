// Takes the still pictures in docs/screenshots: a real room in which a desktop, a laptop and a phone run the built-in model together.
// `cargo xtask screenshots` builds everything and runs this.
// Every state of the page is in the contact sheet (contact-sheet.mjs), which is not committed.
// Before they are committed, the pictures are reduced to 64 colours and encoded without loss: two thirds of the bytes, and sharper.
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { Device } from './harness/browser.mjs';
import { Relay } from './harness/relay.mjs';
import { contribute, host, isUpOn, send, until } from './harness/table.mjs';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'docs/screenshots');
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 844 };
// A story of 170 tokens on three software adapters that share one machine.
const PATIENCE = 600_000;
// The page guesses a device's icon, name and contribution from these.
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36';
const ANDROID = 'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Mobile Safari/537.36';

/** Writes what the window shows. Chromium itself encodes WebP. */
async function shoot(device, name) {
  await device.page.bringToFront();
  // Fonts have loaded and transitions are over.
  await device.page.evaluate(async () => {
    await document.fonts.ready;
    const finite = document.getAnimations().filter((animation) => animation.effect?.getComputedTiming().endTime !== Infinity);
    await Promise.allSettled(finite.map((animation) => animation.finished));
  });
  // A phone shows a page that is too wide cut off or shrunk: neither belongs in a picture.
  const { needed, shown } = await device.page.evaluate(() => ({ needed: document.documentElement.scrollWidth, shown: window.innerWidth }));
  if (needed > shown) throw new Error(`${name}: the page is ${needed} pixels wide and the window only ${shown}`);
  const chromium = await device.context.newCDPSession(device.page);
  const { data } = await chromium.send('Page.captureScreenshot', { format: 'webp', quality: 60 });
  await chromium.detach();
  const path = join(folder, `${name}-${device.options.viewport === NARROW ? 'phone' : 'desktop'}.webp`);
  await writeFile(path, Buffer.from(data, 'base64'));
  console.log(path.slice(root.length + 1));
}

const fold = (device) => device.page.locator('button[aria-controls=table]').click();

async function answered(device, question) {
  await send(device.page, question);
  await device.page.getByText(/first token after/).first().waitFor({ timeout: PATIENCE });
  await shoot(device, 'chat');
}

await mkdir(folder, { recursive: true });
const relay = await Relay.start({ models: join(root, 'public/models') });
const devices = [];
const start = async (name, viewport, ...args) => {
  const device = await Device.start(name, { viewport, args });
  devices.push(device);
  return device;
};
try {
  const desktop = await start('desktop', WIDE);
  const laptop = await start('laptop', WIDE, `--user-agent=${MAC}`);
  const phone = await start('phone', NARROW, `--user-agent=${ANDROID}`);

  const link = await host(desktop.page, relay);
  await until(desktop.page, isUpOn(1));

  await contribute(laptop.page, link);
  await until(desktop.page, isUpOn(2));
  await contribute(phone.page, link);
  await fold(phone);

  for (const device of devices) await until(device.page, isUpOn(3));
  await shoot(phone, 'table');
  await fold(phone);
  await answered(phone, 'What could I bring to a potluck?');
} finally {
  for (const device of devices) await device.stop();
  await relay.stop();
}
