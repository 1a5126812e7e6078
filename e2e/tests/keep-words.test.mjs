// "Keep my words here": the host has the first and the last block, a second device has the middle, and the answer is the same.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, contribute, host, isUp, isUpOn, status, until } from '../harness/table.mjs';

const ROOM = { model: 'six-blocks', share: 'Everyone takes part', context: 512 };
const PROMPT = { max_tokens: 16, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let one;
let two;
let anywhere;
const step = story();

before(async () => {
  relay = await Relay.start({ models: make('six-blocks') });
  [one, two] = await Promise.all(['one', 'two'].map((name) => Device.start(name)));
});

after(async () => {
  await one?.stop();
  await two?.stop();
  await relay?.stop();
});

/** What the page says others get. */
async function whatOthersGet(page) {
  await page.getByRole('button', { name: 'Encryption, and who can see what' }).click();
  const dialog = page.getByRole('dialog', { name: 'Encryption' });
  const text = await dialog.getByText(/lend their GPU get/).textContent();
  await page.keyboard.press('Escape');
  return text;
}

step('two devices answer together, with the ends of the model anywhere', async () => {
  const link = await host(one.page, relay, { ...ROOM, keepWords: false });
  await contribute(two.page, link);
  const { plan } = await until(one.page, isUpOn(2));
  assert.equal(plan.ends, 'Anywhere');
  assert.match(await whatOthersGet(two.page), /The device with the first blocks of the model gets the text itself/);
  anywhere = (await ask(two.page, TEXT, PROMPT)).tokens;
  assert.equal(anywhere.length, PROMPT.max_tokens);
});

step('a host that keeps its words has the first and the last block, and the answer is the same', async () => {
  const link = await host(one.page, relay, { ...ROOM, keepWords: true });
  await contribute(two.page, link);
  const { plan, peer } = await until(one.page, (now) => isUpOn(2)(now) && now.plan.stages.length === 3);
  const [first, middle, last] = plan.stages;
  assert.deepEqual([first.peer, first.embeds, first.first_block, last.peer, last.head, last.end_block], [peer, true, 0, peer, true, 6]);
  assert.notEqual(middle.peer, peer);
  assert.deepEqual([middle.embeds, middle.head], [false, false]);
  assert.ok(first.end_block >= 1 && last.first_block <= 5, JSON.stringify(plan.stages));
  assert.deepEqual((await ask(two.page, TEXT, PROMPT)).tokens, anywhere, 'the same answer for the one who asks');
  assert.deepEqual((await ask(one.page, TEXT, PROMPT)).tokens, anywhere, 'and for the host');
});

step('both pages say what others get, and the host reads why', async () => {
  for (const { page } of [one, two]) {
    await until(page, (now) => isUp(now) && now.plan.ends === 'OnHost');
    const text = await whatOthersGet(page);
    assert.match(text, /get only intermediate numbers, not text/);
    assert.match(text, /a device that has the whole model, or downloads it, can reconstruct much or all of the text/);
  }
  await one.page.locator('summary', { hasText: 'Why this plan?' }).click();
  await one.page.getByText('“Keep my words here” is on: this device computes the first and the last block itself.').waitFor();
});

step('the choice is remembered for the next room', async () => {
  await one.page.goto(relay.url);
  await one.page.getByRole('button', { name: 'Host a model' }).click();
  assert.ok(await one.page.getByLabel('Keep my words here').isChecked());
  assertQuiet(one, two);
});
