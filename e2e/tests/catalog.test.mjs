// The catalogue in the host dialog: what a room can hold, and what is said of a listed file before it is loaded.
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, afterEach, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay, builtPage } from '../harness/relay.mjs';
import { assertQuiet, isUp, status, until } from '../harness/table.mjs';

const GB = 1_000_000_000;
/** A folder for pictures of the dialog; none are taken without it. */
const shots = process.env.POTLUCK_SHOTS && resolve(process.env.POTLUCK_SHOTS);

let relay;
let folder;
let real;
let origin;
let file;
let device;

before(async () => {
  file = await readFile(join(make('tiny'), 'tiny.gguf'));
  folder = await mkdtemp(join(tmpdir(), 'potluck-catalog-'));
  await cp(builtPage, folder, { recursive: true });
  real = await readFile(join(folder, 'catalog.json'), 'utf8');
  relay = await Relay.start({ models: make('tiny'), page: folder });
  origin = await serveFiles();
  if (shots) await mkdir(shots, { recursive: true });
});

afterEach(async () => {
  await device?.stop();
  device = null;
});

after(async () => {
  origin?.close();
  await relay?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The files' own server: other sites' pages may read all but one file, and one is gone. */
async function serveFiles() {
  const server = createServer((request, response) => {
    const cors = request.url === '/private.gguf' ? {} : { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'content-range' };
    if (request.method === 'OPTIONS') return response.writeHead(204, { ...cors, 'access-control-allow-headers': 'range' }).end();
    if (request.url === '/gone.gguf') return response.writeHead(404, cors).end();
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    if (request.method === 'HEAD' || !range) return response.writeHead(200, { ...cors, 'content-length': file.length }).end();
    const [start, end] = [Number(range[1]), Math.min(Number(range[2]), file.length - 1)];
    const part = file.subarray(start, end + 1);
    response.writeHead(206, { ...cors, 'content-range': `bytes ${start}-${end}/${file.length}`, 'content-length': part.length });
    return response.end(part);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

const address = (name) => `http://127.0.0.1:${origin.address().port}/${name}.gguf`;

/** An entry of the test's own list. */
const entry = (name, changes = {}) => ({
  name, task: 'chat', good_for: 'Testing', address: address(name), bytes: file.length, quantization: 'Q8_0', licence: 'CC0-1.0',
  architecture: 'qwen3', parameters: 2_500_000, active: 2_500_000, context: 2048, kv_values: 1024, ...changes,
});

const list = (models) => writeFile(join(folder, 'catalog.json'), JSON.stringify({ models }));

/** Opens the dialog at its tab "Link"; returns it. */
async function openDialog(options) {
  device = await Device.start('host', options);
  const { page } = device;
  await page.goto(relay.url);
  return showDialog(page);
}

async function showDialog(page) {
  await page.getByRole('button', { name: 'Host a model' }).click();
  const dialog = page.getByRole('dialog', { name: 'Host a model' });
  await dialog.getByRole('tab', { name: 'Link' }).click();
  return dialog;
}

const cards = (dialog) => dialog.getByRole('radiogroup', { name: 'Well-known models' }).locator('label');

async function lend(dialog, bytes) {
  const field = dialog.getByLabel('Memory this device lends, exactly');
  await field.fill(`${bytes / GB} GB`);
  await field.press('Tab');
}

/** How many fit, of how many. */
async function found(dialog) {
  const text = await dialog.getByText(/\d+ of \d+ fits? in the memory that you lend/).textContent();
  return /(\d+) of (\d+)/.exec(text).slice(1).map(Number);
}

/** What the browser itself logs of answers that the test wants. */
const assertOnlyFailedRequests = () => {
  const other = device.errors.filter((line) => !/Failed to load resource|blocked by CORS policy/.test(line));
  assert.deepEqual(other, []);
};

for (const { width, height, colorScheme } of [
  { width: 1280, height: 900, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
]) {
  test(`rooms of 2, 8 and 40 GB are offered what they can hold, at ${width} px`, async () => {
    await writeFile(join(folder, 'catalog.json'), real);
    const dialog = await openDialog({ viewport: { width, height }, colorScheme });
    const { page } = device;
    const elsewhere = [];
    page.on('request', (request) => request.url().startsWith(relay.url) || elsewhere.push(request.url()));
    let before = 0;
    for (const room of [2, 8, 40]) {
      await lend(dialog, room * GB);
      const [fit, all] = await found(dialog);
      assert.ok(fit > before && fit < all, `${fit} of ${all} fit ${room} GB, ${before} fitted less`);
      before = fit;
      await cards(dialog).first().getByText(/^Fits/).waitFor();
      await cards(dialog).first().click();
      await dialog.locator('.verdict-fits').getByText(/Weights .* (\+ state .* )?\+ cache .* \+ working memory .* = about/).waitFor();
      const sideways = await page.evaluate(() => {
        const open = document.querySelector('dialog[open]');
        return open.scrollWidth - open.clientWidth;
      });
      assert.equal(sideways, 0, 'nothing is wider than the dialog');
      for (const scheme of shots ? ['light', 'dark'] : []) {
        await page.emulateMedia({ colorScheme: scheme });
        await dialog.getByRole('heading', { name: 'Well-known models' }).scrollIntoViewIfNeeded();
        await page.screenshot({ path: join(shots, `catalog-${room}gb-${width}-${scheme}.png`) });
      }
    }
    assert.deepEqual(elsewhere, [], 'nothing is fetched before the room is opened');
    assertQuiet(device);
  });
}

test('words and tasks narrow the list, and the keyboard chooses', async () => {
  await writeFile(join(folder, 'catalog.json'), real);
  const dialog = await openDialog();
  const { page } = device;
  const [, all] = await found(dialog);
  await dialog.getByRole('button', { name: `Show all ${all}` }).click();
  assert.equal(await cards(dialog).count(), all);
  await dialog.getByLabel('Find a model').fill('gemma');
  await dialog.getByLabel('Good for').selectOption('languages');
  for (const text of await cards(dialog).allTextContents()) assert.match(text, /Gemma/);
  const [, some] = await found(dialog);
  assert.ok(some >= 2 && some < all);
  await cards(dialog).first().getByRole('radio').focus();
  await page.keyboard.press('ArrowDown');
  assert.equal(await cards(dialog).nth(1).getByRole('radio').isChecked(), true, 'the arrow keys move the choice');
  assert.match(await dialog.getByLabel('Address of a GGUF file').inputValue(), /^https:\/\/huggingface\.co\/.*gemma/);
  await dialog.getByLabel('Find a model').fill('no such model');
  await dialog.getByText('No model matches. Try other words.').waitFor();
  assertQuiet(device);
});

test('an architecture that this build does not know is not offered', async () => {
  await list([entry('known'), entry('unknown', { architecture: 'no-such-architecture' })]);
  const dialog = await openDialog();
  assert.deepEqual(await found(dialog), [1, 1]);
});

test('an address that is gone, or that other web sites may not read, gets one sentence', async () => {
  await list([entry('gone'), entry('private')]);
  const dialog = await openDialog();
  for (const [name, sentence] of [
    ['gone', 'There is no file at this address any more. Choose another model.'],
    ['private', /does not let other web sites download this file/],
  ]) {
    await cards(dialog).filter({ hasText: name }).click();
    await dialog.getByRole('button', { name: 'Open the room' }).click();
    await dialog.getByRole('alert').getByText(sentence).waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Load anyway' }).count(), 0);
    await dialog.getByRole('button', { name: 'Choose another' }).click();
    assert.equal(await dialog.getByRole('alert').getByText(sentence).count(), 0);
    const focus = await device.page.evaluate(() => document.activeElement.id);
    assert.equal(focus, 'known-filter');
  }
  assertOnlyFailedRequests();
});

test('other bytes and another licence than listed are said before anything is loaded', async () => {
  await list([entry('other', { bytes: file.length + 1, licence: 'MIT' })]);
  const dialog = await openDialog();
  await cards(dialog).first().click();
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  const alert = dialog.getByRole('alert');
  await alert.getByText(/This file differs from the list: [\d,]+ bytes, not [\d,]+, and licence CC0-1\.0, not MIT\./).waitFor();
  assert.equal((await device.page.evaluate(() => window.potluck.status())).room, null);
  if (shots) await device.page.screenshot({ path: join(shots, 'catalog-doubt.png') });
  await alert.getByRole('button', { name: 'Load anyway' }).click();
  await until(device.page, isUp);
  assertQuiet(device);
});

test('a listed file that is as listed opens at once', async () => {
  await list([entry('same')]);
  const dialog = await openDialog();
  await cards(dialog).first().click();
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  await until(device.page, isUp);
  assertQuiet(device);
});

test('own addresses are kept in this browser until they are forgotten', async () => {
  await list([entry('same')]);
  let dialog = await openDialog();
  await dialog.getByLabel('Address of a GGUF file').fill('https://example.org/mine.gguf');
  await dialog.getByRole('button', { name: 'Keep this address' }).click();
  await dialog.getByRole('heading', { name: 'Your addresses' }).waitFor();
  await device.page.goto(relay.url);
  dialog = await showDialog(device.page);
  await dialog.locator('label', { hasText: 'mine.gguf' }).click();
  assert.equal(await dialog.getByLabel('Address of a GGUF file').inputValue(), 'https://example.org/mine.gguf');
  await dialog.getByRole('button', { name: 'Forget mine.gguf' }).click();
  await dialog.getByRole('heading', { name: 'Your addresses' }).waitFor({ state: 'detached' });
  assertQuiet(device);
});

/** Answers for the Hub: a repository with two files, both of which are the test's own. */
async function playHub(page) {
  const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'range', 'access-control-expose-headers': 'content-range' };
  const files = ['M-Q4_K_M.gguf', 'M-Q8_0.gguf'].map((path, index) => ({ type: 'file', path, size: file.length + index }));
  await page.route('https://huggingface.co/**', (route) => {
    const { pathname } = new URL(route.request().url());
    if (route.request().method() === 'OPTIONS') return route.fulfill({ status: 204, headers: cors });
    if (pathname === '/api/models/owner/M-GGUF/tree/main') return route.fulfill({ json: files, headers: cors });
    if (pathname !== '/owner/M-GGUF/resolve/main/M-Q8_0.gguf') return route.fulfill({ status: 404, headers: cors });
    const [start, end] = /(\d+)-(\d+)/.exec(route.request().headers().range).slice(1).map(Number);
    const body = file.subarray(start, end + 1);
    return route.fulfill({ status: 206, body, headers: { ...cors, 'content-range': `bytes ${start}-${start + body.length - 1}/${file.length}` } });
  });
}

test("a repository's link offers its files, and one that names a quantization opens it", async () => {
  const dialog = await openDialog();
  const { page } = device;
  await playHub(page);
  const field = dialog.getByLabel('Address of a GGUF file');
  const files = dialog.getByRole('radiogroup', { name: 'Choose a file from owner/M-GGUF' }).locator('label');
  await field.fill('https://huggingface.co/owner/M-GGUF');
  await files.first().waitFor();
  assert.match((await files.allTextContents()).join(' '), /M-Q4_K_M\.gguf.* M-Q8_0\.gguf/);
  await files.first().click();
  assert.equal(await field.inputValue(), 'https://huggingface.co/owner/M-GGUF/resolve/main/M-Q4_K_M.gguf');
  await field.fill('hf.co/owner/M-GGUF:Q2_K');
  await dialog.getByText('owner/M-GGUF has no file for Q2_K. Choose another of its files.').waitFor();
  await field.fill('hf.co/owner/Other-GGUF');
  await dialog.getByText(/The files of owner\/Other-GGUF cannot be listed/).waitFor();
  await field.fill('ollama run hf.co/owner/M-GGUF:Q8_0');
  const chosen = 'https://huggingface.co/owner/M-GGUF/resolve/main/M-Q8_0.gguf';
  await page.waitForFunction((address) => Array.from(document.querySelectorAll('input')).some(({ value }) => value === address), chosen);
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  await until(page, isUp);
  assertOnlyFailedRequests();
});

test('a server that has had too many requests is waited for, and the page says when it is asked again', async (context) => {
  // It does not let the page read how long to wait.
  const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'range' };
  let refused = 0;
  const server = createServer((request, response) => {
    if (request.method === 'OPTIONS') return response.writeHead(204, cors).end();
    const [start, end] = /(\d+)-(\d+)/.exec(request.headers.range).slice(1).map(Number);
    if (start > 0 && refused < 6) {
      refused += 1;
      return response.writeHead(429, { ...cors, 'retry-after': '2' }).end();
    }
    const part = file.subarray(start, end + 1);
    const range = { 'access-control-expose-headers': 'content-range', 'content-range': `bytes ${start}-${start + part.length - 1}/${file.length}` };
    response.writeHead(206, { ...cors, ...range, 'content-length': part.length });
    return response.end(part);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  context.after(() => server.close());
  const dialog = await openDialog();
  const { page } = device;
  await dialog.getByLabel('Address of a GGUF file').fill(`http://127.0.0.1:${server.address().port}/busy.gguf`);
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  await page.getByText(/Trying again in \d+ s|next try in \d+ s/).first().waitFor();
  await until(page, isUp);
  assert.equal(refused, 6);
  assertOnlyFailedRequests();
});

/** A server that gives its file only to requests with the token, and leads them to another one, which counts the tokens that it sees. */
async function serveGated(context, token) {
  const seen = { refused: 0, stray: 0 };
  const cors = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'content-range' };
  const files = createServer((request, response) => {
    seen.stray += request.headers.authorization ? 1 : 0;
    if (request.method === 'OPTIONS') return response.writeHead(204, { ...cors, 'access-control-allow-headers': 'range, authorization' }).end();
    const [start, end] = /(\d+)-(\d+)/.exec(request.headers.range).slice(1).map(Number);
    const part = file.subarray(start, end + 1);
    response.writeHead(206, { ...cors, 'content-range': `bytes ${start}-${start + part.length - 1}/${file.length}`, 'content-length': part.length });
    return response.end(part);
  });
  const gate = createServer((request, response) => {
    if (request.method === 'OPTIONS') return response.writeHead(204, { ...cors, 'access-control-allow-headers': 'range, authorization' }).end();
    if (request.headers.authorization === `Bearer ${token}`) return response.writeHead(302, { ...cors, location: `http://127.0.0.1:${files.address().port}/signed` }).end();
    seen.refused += 1;
    return response.writeHead(401, cors).end();
  });
  for (const server of [files, gate]) {
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    context.after(() => server.close());
  }
  return { address: `http://127.0.0.1:${gate.address().port}/gated.gguf`, seen };
}

test('a gated file opens with an access token, which stays in this browser and goes to its server only', async (context) => {
  const { address: gated, seen } = await serveGated(context, 'hf_mine');
  let dialog = await openDialog();
  const { page } = device;
  await dialog.getByLabel('Address of a GGUF file').fill(gated);
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  await page.getByText(/refuses to send this file to this device.* access token/).first().waitFor();
  assert.ok(seen.refused > 0, 'the server was asked without a token');
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Settings' }).click();
  const settings = page.getByRole('dialog', { name: 'Settings' });
  await settings.getByLabel('Server').fill(gated);
  await settings.getByLabel('Access token', { exact: true }).fill('two words');
  await settings.getByRole('button', { name: 'Keep this token' }).click();
  await settings.getByText('An access token consists of letters, digits and signs, without blanks. Copy it again.').waitFor();
  await settings.getByLabel('Access token', { exact: true }).fill('hf_mine');
  await settings.getByRole('button', { name: 'Keep this token' }).click();
  await settings.getByRole('button', { name: /^Forget the access token of 127\.0\.0\.1/ }).waitFor();
  assert.equal(await settings.getByLabel('Access token', { exact: true }).inputValue(), '', 'the field shows it no longer');
  if (shots) await page.screenshot({ path: join(shots, 'access-tokens.png') });
  await page.goto(relay.url);
  dialog = await showDialog(page);
  await dialog.getByLabel('Address of a GGUF file').fill(gated);
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  await until(page, isUp);
  assert.equal(seen.stray, 0, 'the server that it leads to must not see the token');
  assert.ok(!JSON.stringify(await status(page)).includes('hf_mine'), 'scripts of the page do not see it');
  assertOnlyFailedRequests();
});

test('without a readable list an address still works', async () => {
  for (const text of ['{ broken', null]) {
    if (text === null) await rm(join(folder, 'catalog.json'));
    else await writeFile(join(folder, 'catalog.json'), text);
    const dialog = await openDialog();
    await dialog.getByText('The list of well-known models could not be loaded. You can still enter the address of a GGUF file.').waitFor();
    assert.equal(await dialog.getByLabel('Address of a GGUF file').isEnabled(), true);
    assertOnlyFailedRequests();
    await device.stop();
  }
});
