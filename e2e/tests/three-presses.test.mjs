// Four people: a host, two contributors whose parts are needed, a guest. Kill, reload, second visit. The guest comes through HAProxy, in
// a folder and over TLS, where HAProxy is installed.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Proxy, TRUSTING, missing } from '../harness/proxy.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import {
  MB, answerBegins, ask, assertQuiet, begin, contribute, enter, holdFrames, host, isUp, isUpOn, send, status, stopAnswer, until,
} from '../harness/table.mjs';

const MODEL = 'six-blocks';
// One device is too small, two are enough, three share: so each holds a part, and one can be lost.
const LENDS = 40 * MB;
const PROMPT = { max_tokens: 24, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let proxy;
const devices = {};
let link;
let undisturbed;
const step = story();

before(async () => {
  relay = await Relay.start({ models: make(MODEL) });
  if (!missing('haproxy')) proxy = await Proxy.start('haproxy', relay);
  for (const name of ['host', 'first', 'second', 'guest']) devices[name] = await Device.start(name, TRUSTING);
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await proxy?.stop();
  await relay?.stop();
});

step('a tab with room for everything gives the answer that all others are held against', async () => {
  const alone = await Device.start('alone');
  try {
    await host(alone.page, relay, { model: MODEL, context: 512 });
    await until(alone.page, isUp);
    undisturbed = (await ask(alone.page, TEXT, PROMPT)).tokens;
    assert.equal(undisturbed.length, PROMPT.max_tokens);
  } finally {
    await alone.stop();
  }
});

step('one tab alone says by how much the room is too small', async () => {
  link = await host(devices.host.page, relay, { model: MODEL, lends: LENDS, share: 'Everyone takes part', context: 512 });
  await until(devices.host.page, (status) => status.plan?.waiting != null);
  const { waiting } = (await status(devices.host.page)).plan;
  assert.ok(waiting.needed > waiting.lent, JSON.stringify(waiting));
  assert.match(waiting.sentence, /MB more/);
  const sentence = devices.host.page.getByText(waiting.sentence).first();
  await sentence.waitFor();
  const help = devices.host.page.getByRole('region', { name: 'What would help' });
  await help.getByText(/^If one more device lends .* MB, the model fits\.$/).waitFor();
});

step('two contributors make it fit, and each holds a stage that is needed', async () => {
  await contribute(devices.first.page, link, { lends: LENDS });
  await contribute(devices.second.page, link, { lends: LENDS });
  const lendsLittle = ({ peers }) => peers.every(({ lent }) => lent <= LENDS);
  const { plan, peers } = await until(devices.host.page, (now) => isUpOn(3)(now) && lendsLittle(now), 'three that lend little');
  const working = new Set(plan.stages.filter((stage) => stage.end_block > stage.first_block).map((stage) => stage.peer));
  for (const name of ['first', 'second']) {
    const { peer } = await status(devices[name].page);
    assert.ok(working.has(peer), `${name} must hold blocks: ${JSON.stringify(plan.stages)}`);
  }
  assert.equal(peers.length, 3);
});

step('a guest asks and reads the answer, as text on the page', async () => {
  await enter(devices.guest.page, link.replace(relay.url, (proxy ?? relay).url));
  await until(devices.guest.page, isUp);
  const answer = await ask(devices.guest.page, TEXT, PROMPT);
  assert.deepEqual(answer.tokens, undisturbed, 'three stages answer what one device answers');
  const again = await ask(devices.host.page, TEXT, PROMPT);
  assert.deepEqual(again.tokens, undisturbed, 'the same question has the same greedy answer for everyone');
  await send(devices.guest.page, 'Hello');
  await stopAnswer(devices.guest.page);
});

step('the table says what each part of a token takes, where most of it goes and what would help', async () => {
  const { page } = devices.host;
  const isMeasured = ({ plan }) => plan?.hops.length >= 3 && plan.hops.every((hop) => hop.measured_ms > 0);
  // A plan that took over since the last answer was not measured yet: tokens tell.
  let now = await status(page);
  while (!isMeasured(now)) {
    const { epoch } = now.plan;
    await ask(page, TEXT, PROMPT);
    now = await until(page, (later) => isMeasured(later) || (isUpOn(3)(later) && later.plan.epoch !== epoch));
  }
  const { plan, peers } = now;
  const whole = plan.stages.reduce((sum, stage) => sum + stage.measured_ms, 0) + plan.hops.reduce((sum, hop) => sum + hop.measured_ms, 0);
  assert.ok(whole > 0 && plan.token_ms > 0, JSON.stringify(plan));
  await page.getByText(/^Time per token: .* measured, .* expected$/).click();
  const path = page.getByRole('list', { name: 'Time per token' });
  // Three stages and three messages, in the order of a token; one stage more where the host has the first and the last blocks.
  const parts = plan.stages.length + plan.hops.length;
  await path.getByRole('listitem').nth(parts - 1).waitFor();
  const rows = await path.getByRole('listitem').allInnerTexts();
  assert.equal(rows.length, parts, rows.join(' | '));
  for (const row of rows) assert.match(row, /m?s measured, .* expected/, rows.join(' | '));
  assert.equal(rows.filter((row) => /bottleneck/.test(row)).length, 1, rows.join(' | '));
  const names = peers.filter(({ peer }) => peer !== now.peer).map((peer) => peer.name);
  for (const name of names) assert.ok(rows.some((row) => row.includes(name)), `${name} must be on the path: ${rows.join(' | ')}`);
});

step('a visit whose weights are in the cache downloads nothing', async () => {
  // The planner may give devices that come back other blocks than before; what they load is kept, so that ends.
  const downloads = [];
  for (let visit = 0; visit < 12 && downloads.at(-1) !== 0; visit += 1) {
    await devices.second.restart();
    const before = await relay.metric('potluck_relay_model_bytes_total');
    // What this device lent the last time is remembered.
    await contribute(devices.second.page, link);
    await until(devices.host.page, isUpOn(3));
    downloads.push((await relay.metric('potluck_relay_model_bytes_total')) - before);
  }
  assert.equal(downloads.at(-1), 0, `every weight must be in the cache by now; bytes of each visit: ${downloads}`);
  const answer = await ask(devices.guest.page, TEXT, PROMPT);
  assert.deepEqual(answer.tokens, undisturbed);
});

step('the host reloads in the middle of an answer: the room is still there', async () => {
  const asked = ask(devices.guest.page, TEXT, { ...PROMPT, max_tokens: 200 }).catch((error) => error);
  await until(devices.guest.page, (status) => status.pending.length > 0);
  await devices.host.page.reload();
  await until(devices.host.page, isUp);
  await asked;
  const answer = await ask(devices.guest.page, TEXT, PROMPT);
  assert.deepEqual(answer.tokens, undisturbed, 'the next prompt needs no press');
  await ask(devices.host.page, TEXT, PROMPT);
});

step('a contributor is killed in the middle of an answer: it finishes and is the undisturbed one', async () => {
  const long = { ...PROMPT, max_tokens: 60 };
  const calm = await ask(devices.guest.page, TEXT, long);
  const { asked } = await begin(devices.guest.page, TEXT, long, 10);
  await devices.second.kill();
  const answer = await asked;
  assert.deepEqual(answer.tokens, calm.tokens, 'the answer must be the undisturbed one');
  await until(devices.host.page, isUpOn(2), 'two devices hold the blocks now');
  await devices.second.forget();
  delete devices.second;
});

step('an answer goes on behind a new conversation, and a reload keeps what it wrote there', async () => {
  const { page } = devices.guest;
  const fresh = page.getByRole('button', { name: 'New', exact: true });
  const shown = () => page.locator('.answer .prose').last().textContent();
  await fresh.click();
  // A made-up model may end an answer at its first words: then another one is asked for.
  for (const question of ['Hello again', 'And once more', 'And a last time']) {
    await send(page, question);
    await answerBegins(page);
    const seen = (await shown()).length;
    // A frame that comes after its conversation is gone does no harm.
    const draw = await holdFrames(page);
    const before = await status(page);
    await until(page, (now) => now.tokens_received > before.tokens_received || now.pending.length === 0, 'there is something to draw');
    await fresh.click();
    await draw();
    const { tokens_received } = await status(page);
    const grown = (now) => now.tokens_received >= tokens_received + 20;
    const now = await until(page, (now) => grown(now) || now.pending.length === 0, 'the answer grows unseen, or ends');
    if (now.pending.length === 0) continue;
    await page.reload();
    await until(page, isUp);
    await page.getByRole('button', { name: 'Chats' }).click();
    await page.getByRole('dialog', { name: 'Chats' }).getByRole('button', { name: question, exact: true }).click();
    await page.locator('.answer .prose').getByText(/\S/).first().waitFor();
    const kept = (await shown()).length;
    return assert.ok(kept > seen, `${seen} characters were seen, ${kept} are kept`);
  }
  assert.fail('no answer went on behind a new conversation');
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
