// Coming back to the table, and telling the truth: about a device that cannot compute, an answer's numbers, a bar's percentage.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';

import { WIDTHS, kitchen } from '../harness/hands.mjs';
import { chunks } from '../harness/reciting.mjs';
import { ask, contribute, endedAnswers, enter, eventually, isUp, send, until } from '../harness/table.mjs';

const here = kitchen({
  soup: { text: 'Soup is hot.' },
  // About 10 MB.
  large: { parts: chunks('Soup is hot and bread is fresh. '.repeat(1000), 4) },
});

const isInside = (status) => !status.role.coordinator && status.room !== null && status.connection === 'Connected' && isUp(status);
const works = (status) => isInside(status) && status.role.worker;

/** A host, a worker and a guest at one table. */
const atTable = here.shared(async () => {
  const [host, worker, guest] = await Promise.all(['host', 'worker', 'guest'].map((name) => here.start(name)));
  const link = await here.open(host.page, 'soup', { share: 'Everyone takes part' });
  await contribute(worker.page, link);
  await enter(guest.page, link);
  return { host, worker, guest };
});
const onDevice = here.shared(() => here.start('host'));
const withoutGpu = here.shared(() => here.start('host', { gpu: false }));

for (const viewport of WIDTHS) {
  test(`a guest and a worker who look at the bench are back with one press of the browser, ${viewport.width} pixels wide`, atTable(async ({ host, worker, guest }) => {
    for (const { page } of [host, worker, guest]) await page.setViewportSize(viewport);
    for (const [{ page }, isBack] of [[worker, works], [guest, isInside]]) {
      await until(page, isBack);
      await page.goto(`${here.relay.url}/bench`);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      await page.goBack();
      await until(page, isBack, 'it is at the table again');
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
    }
    assert.equal((await ask(guest.page, 'Is it warm?')).text, 'Soup is hot.');
    const lends = (status) => status.peers.filter(({ lent }) => lent > 0).length === 2;
    await until(host.page, lends, 'host and worker lend');
  }));
}

for (const viewport of WIDTHS) {
  test(`a host without WebGPU is told that it cannot compute, ${viewport.width} pixels wide`, withoutGpu(async ({ page }) => {
    await page.setViewportSize(viewport);
    await page.goto(here.relay.url);
    await page.getByText(/No WebGPU here/).first().waitFor();
    await page.getByRole('button', { name: 'Host a model' }).click();
    const dialog = page.getByRole('dialog', { name: 'Host a model' });
    await dialog.locator('label', { hasText: 'soup' }).click();
    await dialog.getByText(/cannot compute|no WebGPU/i).first().waitFor({ timeout: 60_000 });
    const words = await dialog.innerText();
    assert.doesNotMatch(words, /\bFits\b|\blends? \d/, 'it does not say what such a device would lend');
  }));
}

test('an answer has its numbers, and none that only the page expected', onDevice(async ({ page }) => {
  await here.open(page, 'soup');
  for (let turn = 0; turn < 3; turn += 1) {
    await send(page, 'Is it warm?');
    await endedAnswers(page).nth(turn).waitFor();
    const numbers = page.locator('.answer-numbers').nth(turn);
    await numbers.filter({ hasText: /\d tokens/ }).waitFor();
    assert.doesNotMatch(await numbers.innerText(), /expected/);
  }
}));

/** A server of one file. Of long ranges it sends `whole` bytes as they are, and the halves of all others until `release`. */
async function serveHalves(path, whole) {
  const bytes = await readFile(path);
  const slow = { sent: 0 };
  const released = new Promise((release) => { slow.release = release; });
  slow.server = createServer(async (request, response) => {
    const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'range' };
    if (request.method === 'OPTIONS') return response.writeHead(204, cors).end();
    if (!request.headers.range) return response.writeHead(200, { ...cors, 'content-length': bytes.length }).end();
    const [first, last] = request.headers.range.match(/\d+/g).map(Number);
    const part = bytes.subarray(first, last + 1);
    const isLong = part.length > 200_000;
    const half = isLong ? Math.min(part.length, Math.max(part.length >> 1, whole - slow.sent)) : part.length;
    slow.sent += isLong ? half : 0;
    response.writeHead(206, { ...cors, 'content-length': part.length }).write(part.subarray(0, half));
    if (half < part.length) await released;
    return response.end(part.subarray(half));
  });
  slow.server.listen(0, '127.0.0.1');
  await once(slow.server, 'listening');
  return slow;
}

test('the percentage beside a bar is what the bar shows', onDevice(async ({ page }, context) => {
  const slow = await serveHalves(join(here.folder, 'large.gguf'), 7_000_000);
  context.after(() => {
    slow.release();
    slow.server.close();
    slow.server.closeAllConnections();
  });
  await page.goto(here.relay.url);
  await page.getByRole('button', { name: 'Host a model' }).click();
  const dialog = page.getByRole('dialog', { name: 'Host a model' });
  await dialog.getByRole('tab', { name: 'Link' }).click();
  await dialog.getByLabel('Address of a GGUF file').fill(`http://127.0.0.1:${slow.server.address().port}/large.gguf`);
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  // Four megabytes arrive and are kept; after a reload they are here already, and the rest comes in halves.
  await until(page, ({ loading }) => loading?.phase === 'download' && loading.done > 4_500_000);
  const bars = () =>
    page.evaluate(() =>
      Array.from(document.querySelectorAll('[role=progressbar], progress'))
        .filter((bar) => bar.checkVisibility())
        .map((bar) => {
          const value = bar instanceof HTMLProgressElement ? Math.floor((100 * bar.value) / bar.max) : Number(bar.ariaValueNow);
          return { value, words: bar.parentElement.innerText, percents: (bar.parentElement.innerText.match(/\d+(?= ?%)/g) ?? []).map(Number) };
        }));
  const assertTrue = (bars) => {
    for (const { value, words, percents } of bars) {
      for (const percent of percents) assert.equal(percent, value, `the bar is at ${value}: ${words}`);
    }
  };
  await page.reload();
  await until(page, ({ loading }) => loading?.phase === 'download' && loading.cached > 0 && loading.done > loading.cached, 'some of it is cached, and more has come');
  assertTrue(await eventually(bars, (bars) => bars.some(({ value }) => value > 0), 'a bar is shown'));
  slow.release();
  await until(page, isUp);
  assertTrue(await bars());
}));
