// Two browser engines at one table: Firefox beside Chromium, each as the host and as the other one's helper. One of them dies in the
// middle of an answer. Every answer is the one that Chromium gives alone.
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { WIDTHS, assertFits } from '../harness/hands.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, begin, contribute, endedAnswers, host, isUp, isUpOn, send, until } from '../harness/table.mjs';

// A trained model: where two adapters round differently, its best token is still far ahead of the next one.
const models = resolve(import.meta.dirname, '../../public/models');
const MODEL = '24.5 MB';
const TEXT = 'Tell me a story about a table.';
const GREEDY = { temperature: 0, max_tokens: 100 };

let relay;
let chromium;
let firefox;
let link;
let alone;
const step = story();

/** Opens a room in which everyone takes part. */
const open = (device) => host(device.page, relay, { model: MODEL, share: 'Everyone takes part', context: 512 });

/** The other engine's device is reached past the relay, too. */
const connects = (device) =>
  until(device.page, ({ paths }) => paths.some(([, { direct_ms }]) => direct_ms > 0), 'the engines have a direct connection');

const asks = async (device) => (await ask(device.page, TEXT, GREEDY)).text;

/** `leaving` is killed while an answer of the room runs: it goes on and is the undisturbed one. */
async function dies(leaving, host_) {
  const { asked } = await begin(host_.page, TEXT, GREEDY, 5);
  await leaving.kill();
  assert.equal((await asked).text, alone, 'the answer goes on and is the undisturbed one');
  await until(host_.page, isUpOn(1));
}

before(async () => {
  relay = await Relay.start({ models });
  chromium = await Device.start('Chromium');
  firefox = await Device.start('Firefox', { engine: 'firefox' });
});

after(async () => {
  await firefox?.stop();
  await chromium?.stop();
  await relay?.stop();
});

step('Chromium gives the answer that all others are held against', async () => {
  link = await open(chromium);
  await until(chromium.page, isUp);
  alone = await asks(chromium);
  assert.ok(alone.length > 200, alone);
});

step('Firefox lends its GPU to a host in Chromium, and both ask', async () => {
  await contribute(firefox.page, link);
  await until(chromium.page, isUpOn(2));
  await until(firefox.page, ({ device }) => device.self_test.state === 'Passed', 'every kernel is right in Firefox');
  assert.equal(await asks(chromium), alone);
  assert.equal(await asks(firefox), alone);
  await connects(chromium);
  await connects(firefox);
});

step('Firefox dies in the middle of an answer', async () => {
  await dies(firefox, chromium);
});

step('Firefox hosts and answers as Chromium does', async () => {
  await firefox.launch();
  link = await open(firefox);
  await until(firefox.page, isUp);
  assert.equal(await asks(firefox), alone);
});

step('a message is written, sent and answered on the page in Firefox, on a wide and on a narrow window', async () => {
  for (const [index, viewport] of WIDTHS.entries()) {
    await firefox.page.setViewportSize(viewport);
    await send(firefox.page, 'Hello');
    await endedAnswers(firefox.page).nth(index).waitFor();
    assert.match(await endedAnswers(firefox.page).nth(index).innerText(), /\w/);
    await assertFits(firefox.page);
    const { content, window } = await firefox.page.evaluate(() => ({ content: document.documentElement.scrollWidth, window: innerWidth }));
    assert.ok(content <= window, `the page has ${content} pixels, its window ${window}`);
  }
});

step('Chromium lends its GPU to a host in Firefox, and both ask', async () => {
  await contribute(chromium.page, link);
  await until(firefox.page, isUpOn(2));
  assert.equal(await asks(firefox), alone);
  assert.equal(await asks(chromium), alone);
  await connects(chromium);
  await connects(firefox);
});

step('Chromium dies in the middle of an answer', async () => {
  await dies(chromium, firefox);
});

step('Firefox finds its room and its weights again after a reload', async () => {
  const before = await relay.metric('potluck_relay_model_bytes_total');
  await firefox.page.reload();
  await until(firefox.page, isUp);
  assert.equal(await asks(firefox), alone);
  assert.equal((await relay.metric('potluck_relay_model_bytes_total')) - before, 0, 'every weight must be in the cache by now');
});

step('no console shows an error', () => {
  assertQuiet(firefox);
});
