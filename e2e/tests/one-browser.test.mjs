// Three tabs of one browser hold a model together: their frames go from tab to tab, past the relay. One is closed; one that
// cannot do so takes its place; a guest in another browser notices nothing of all that.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { MB, ask, assertQuiet, begin, contribute, enter, host, isUp, isUpOn, status, until } from '../harness/table.mjs';

const MODEL = 'six-blocks';
// One tab is too small, two are enough, three share.
const LENDS = 40 * MB;
const PROMPT = { max_tokens: 24, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let browser;
let guest;
let tabs;
let link;
let undisturbed;
const step = story();

before(async () => {
  relay = await Relay.start({ models: make(MODEL) });
  browser = await Device.start('browser');
  guest = await Device.start('guest');
});

after(async () => {
  await browser?.stop();
  await guest?.stop();
  await relay?.stop();
});

step('a tab with room for everything gives the answer that all others are held against', async () => {
  await host(guest.page, relay, { model: MODEL, context: 512 });
  await until(guest.page, isUp);
  undisturbed = (await ask(guest.page, TEXT, PROMPT)).tokens;
  assert.equal(undisturbed.length, PROMPT.max_tokens);
});

step('three tabs of one browser answer like one', async () => {
  tabs = [browser.page];
  link = await host(tabs[0], relay, { model: MODEL, lends: LENDS, share: 'Everyone takes part', context: 512 });
  // One by one: only the newest tab is in front, where it can be clicked. Its browser remembers what the host lends.
  while (tabs.length < 3) {
    tabs.push(await browser.newTab());
    await contribute(tabs.at(-1), link);
  }
  await until(tabs[0], isUpOn(3));
  assert.deepEqual((await ask(tabs[0], TEXT, PROMPT)).tokens, undisturbed);
});

step('each token comes to each of them directly', async () => {
  const heard = () => Promise.all(tabs.map(async (tab) => (await status(tab)).direct_frames));
  const earlier = await heard();
  await ask(tabs[0], TEXT, PROMPT);
  // A token is a frame to each of the three; the first one comes with the prompt. Snapshots follow at leisure.
  const enough = PROMPT.max_tokens - 1;
  for (const [index, tab] of tabs.entries()) {
    await until(tab, ({ direct_frames }) => direct_frames >= earlier[index] + enough, `${enough} frames more than ${earlier[index]} came directly to tab ${index}`);
  }
});

step('a guest in another browser asks through the relay', async () => {
  await enter(guest.page, link);
  await until(guest.page, isUp);
  assert.deepEqual((await ask(guest.page, TEXT, PROMPT)).tokens, undisturbed);
  assert.equal((await status(guest.page)).direct_frames, 0);
});

step('a tab is closed in the middle of an answer: the room goes on, and the answer is the undisturbed one', async () => {
  const long = { ...PROMPT, max_tokens: 60 };
  const calm = await ask(guest.page, TEXT, long);
  const { asked } = await begin(guest.page, TEXT, long, 10);
  await tabs.pop().close();
  assert.deepEqual((await asked).tokens, calm.tokens);
  await until(tabs[0], isUpOn(2));
});

step('a tab whose browser introduces and connects nobody takes part through the relay', async () => {
  const alone = await browser.newTab();
  await alone.addInitScript(() => {
    delete window.SharedWorker;
    delete window.RTCPeerConnection;
  });
  await contribute(alone, link);
  await until(tabs[0], isUpOn(3));
  assert.deepEqual((await ask(guest.page, TEXT, PROMPT)).tokens, undisturbed);
  assert.equal((await status(alone)).direct_frames, 0);
});

step('no console shows an error', () => {
  assertQuiet(browser, guest);
});
