// Milliseconds from a key to the painted frame in a draft of 1 MB: the page's composer beside a bare text field of the same text,
// width, font and height, in turns. POTLUCK_PAGE measures another page.
//   node e2e/bench/typing.mjs --rounds 15
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { write } from '../harness/reciting.mjs';
import { Relay, builtPage } from '../harness/relay.mjs';
import { host, isUp, until } from '../harness/table.mjs';

import { median } from './hops.mjs';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '15' }, characters: { type: 'string', default: '1000000' } } });
const rounds = Number(values.rounds);
const filled = (line) => line.repeat(Math.ceil(Number(values.characters) / line.length)).slice(0, Number(values.characters));
const TEXTS = { 'long lines': filled(`${'soup and bread are on the table '.repeat(300)}\n`), 'short lines': filled('soup is hot\n') };

const folder = mkdtempSync(join(tmpdir(), 'potluck-recitals-'));
write(join(folder, 'soup.gguf'), { name: 'soup', text: 'Soup is hot.' });
const relay = await Relay.start({ models: folder });
const device = await Device.start('writer');
try {
  await device.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const composer = device.page;
  await host(composer, relay, { model: 'soup' });
  await until(composer, isUp);
  const bare = await device.newTab();
  // A page of the same place may read the same clipboard.
  await bare.goto(`${relay.url}/catalog.json`);
  for (const page of [composer, bare]) page.setDefaultTimeout(0);
  const table = {};
  for (const [name, text] of Object.entries(TEXTS)) {
    // The composer is as tall as it gets with this text; the bare field gets its measures.
    await composer.bringToFront();
    await paste(composer, text);
    const style = await composer.evaluate(measures);
    await bare.setContent(`<!doctype html><textarea></textarea>`);
    await bare.evaluate((style) => Object.assign(document.querySelector('textarea').style, style), style);
    const times = { composer: { paste: [], key: [] }, bare: { paste: [], key: [] } };
    for (let round = 0; round < rounds; round += 1) {
      for (const [where, page] of [['composer', composer], ['bare', bare]]) {
        await page.bringToFront();
        // Pastes take long: fewer of them, each into an empty field.
        if (round % 5 === 0) times[where].paste.push(await paste(page, text));
        times[where].key.push(await key(page));
      }
    }
    for (const what of ['key', 'paste']) {
      const [own, plain] = [times.composer, times.bare].map((where) => median(where[what]));
      table[`${what}, ${name}`] = { 'composer, ms': round1(own), 'bare, ms': round1(plain), ratio: Math.round((100 * own) / plain) / 100 };
    }
  }
  console.log(builtPage);
  console.table(table);
  // The bare page has no icon.
  const errors = device.errors.filter((error) => !error.includes('404'));
  if (errors.length > 0) console.log(`errors: ${errors.slice(0, 3).join('\n')}`);
} finally {
  await device.stop();
  await relay.stop();
  await rm(folder, { recursive: true, force: true });
}

function round1(value) {
  return Math.round(value * 10) / 10;
}

/** Runs in the page: what decides how the text is laid out. */
function measures() {
  const field = document.querySelector('textarea');
  const style = getComputedStyle(field);
  const names = ['font', 'letterSpacing', 'padding', 'border', 'boxSizing', 'whiteSpace', 'overflowWrap', 'resize', 'lineHeight'];
  const { width, height } = field.getBoundingClientRect();
  return { ...Object.fromEntries(names.map((name) => [name, style[name]])), width: `${width}px`, height: `${height}px` };
}

/** Empties the field, pastes a text into it, and waits for the frame. */
async function paste(page, text) {
  await page.evaluate((text) => {
    const field = document.querySelector('textarea');
    field.value = '';
    field.dispatchEvent(new InputEvent('input', { bubbles: true }));
    field.focus();
    return navigator.clipboard.writeText(text);
  }, text);
  return press(page, 'Control+V');
}

/** Types a character in the middle of the text, and waits for the frame. */
async function key(page) {
  await page.evaluate(() => {
    const field = document.querySelector('textarea');
    field.focus();
    field.setSelectionRange(field.value.length >> 1, field.value.length >> 1);
  });
  return press(page, 'a');
}

/** Milliseconds from a key to the painted frame of what it does. */
async function press(page, keys) {
  await page.evaluate(() => {
    let begun;
    const field = document.querySelector('textarea');
    field.addEventListener('keydown', (event) => { begun = event.timeStamp; });
    window.painted = new Promise((done) => {
      field.addEventListener('input', () => {
        requestAnimationFrame(() => {
          const channel = new MessageChannel();
          channel.port1.onmessage = () => done(performance.now() - begun);
          channel.port2.postMessage(null);
        });
      }, { once: true });
    });
  });
  await page.keyboard.press(keys);
  return page.evaluate(() => window.painted);
}
