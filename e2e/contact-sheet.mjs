// A contact sheet: what the page shows in each of its states, in two widths, light and dark, in one file to look at:
// `node contact-sheet.mjs [FOLDER]` after `cargo xtask build`. Without a folder, it goes to e2e/out/contact-sheet.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { Device } from './harness/browser.mjs';
import { write } from './harness/reciting.mjs';
import { Relay } from './harness/relay.mjs';
import { isUp, status, until } from './harness/table.mjs';

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, 'out/contact-sheet'));
const WINDOWS = [
  { width: 1280, height: 800, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'light' },
  { width: 1280, height: 800, colorScheme: 'dark' },
  { width: 390, height: 844, colorScheme: 'dark' },
];
const ANSWER =
  'A soup for **four**:\n\n| what | how much |\n|---|---:|\n| leeks | 3 |\n| potatoes | 500 g |\n\n```python\ndef serves(litres: float) -> int:\n    """So many bowls of 0.3 litres."""\n    return int(litres / 0.3)\n```\n\nEach bowl has $\\frac{1}{4}$ of it. 1. Cut. 2. Cook.';

const shots = [];
let device;
let wrong = 0;

/** A picture of the window in each size and scheme. */
async function shoot(name) {
  const { page } = device;
  for (const { width, height, colorScheme } of WINDOWS) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const file = `${String(shots.length).padStart(3, '0')}-${name.replaceAll(/\W+/g, '-')}.png`;
    await page.screenshot({ path: join(folder, file) });
    const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (sideways > 0) console.error(`${name}: ${sideways} pixels too wide at ${width}`);
    wrong += sideways > 0;
    shots.push({ name, file, width, colorScheme });
  }
  await page.setViewportSize(WINDOWS[0]);
}

const button = (name) => device.page.getByRole('button', { name, exact: true }).first();

/** A picture of what a button opens, which Escape closes. */
async function opened(name, open, seen = device.page.locator('dialog[open]')) {
  await open.click();
  await seen.first().waitFor();
  await shoot(name);
  await device.page.keyboard.press('Escape');
}

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
write(join(folder, 'models/soup.gguf'), { name: 'soup', text: ANSWER });
const relay = await Relay.start({ models: join(folder, 'models') });
try {
  device = await Device.start('contact sheet', { viewport: WINDOWS[0] });
  const { page } = device;
  await page.goto(relay.url);
  await button('Host a model').waitFor();
  await shoot('the door');
  await opened('rooms', button('Contribute GPU'));
  await button('Host a model').click();
  await page.locator('button:enabled', { hasText: 'Open the room' }).waitFor();
  await shoot('host, the relay’s models');
  await page.locator('summary', { hasText: 'More options' }).click();
  await page.getByText('Share the work').scrollIntoViewIfNeeded();
  await shoot('host, more options');
  for (const tab of ['Link', 'This device', 'This relay']) {
    await page.getByRole('tab', { name: tab }).click();
    if (tab !== 'This relay') await shoot(`host, ${tab}`);
  }
  await page.locator('button:enabled', { hasText: 'Open the room' }).click();
  await until(page, isUp);
  await shoot('a room of one device');
  await page.getByLabel('Attach text files').setInputFiles({ name: 'stock.csv', mimeType: 'text/csv', buffer: Buffer.from('leeks,2\npotatoes,900 g\n') });
  await page.getByLabel('Message').fill('What do I need for soup, and is it here?');
  await page.locator('.file-chip').waitFor();
  await shoot('a question with a file');
  await page.getByLabel('Message').press('Enter');
  await page.locator('.answer-foot').waitFor();
  await shoot('an answer');
  await button('Write another answer beside this one').click();
  await page.locator('.answer-beside .answer-foot').waitFor();
  await shoot('two answers');
  await button('Close the comparison').click();
  await page.getByRole('button', { name: 'Edit' }).first().click();
  await shoot('a question is edited');
  await button('Cancel').click();
  await opened('answers in this conversation', button('Answers in this conversation'));
  await opened('chats', button('Chats'));
  await opened('settings', button('Settings'));
  await opened('invite', button('Invite'));
  await opened('the room is left', button('Leave the room'));
  await page.locator('summary', { hasText: 'Why this plan?' }).click();
  await shoot('why this plan');
  const { link } = (await status(page)).room;
  await page.goto(`${relay.url}/chats`);
  await page.locator('.chat-title').waitFor();
  await shoot('conversations without a room');
  await page.goto(`${relay.url}/bench`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await shoot('the bench');
  await device.stop();
  device = await Device.start('guest', { viewport: WINDOWS[0] });
  await device.page.goto(relay.url + link);
  await button('Contribute GPU').waitFor();
  await shoot('a room’s link');
} finally {
  await device?.stop();
  await relay.stop();
}
const figure = ({ name, file, width, colorScheme }) => `<figure><img src="${file}" width="${width / 3}"><figcaption>${name}, ${width}, ${colorScheme}</figcaption></figure>`;
await writeFile(
  join(folder, 'index.html'),
  `<!doctype html><meta charset="utf-8"><title>Contact sheet</title><style>body{display:flex;flex-wrap:wrap;gap:12px;font:12px sans-serif;background:#888}figure{margin:0}</style>\n${shots.map(figure).join('\n')}\n`,
);
console.log(`${shots.length} pictures: ${join(folder, 'index.html')}`);
process.exitCode = wrong > 0 ? 1 : 0;
