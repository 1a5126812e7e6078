// The embedded model with its experts spread over three browsers, or loaded on demand by one that lends too little for them: the
// answer of a lone tab, also when a holder dies and when the cache is evicted.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { join, resolve } from 'node:path';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { ask, assertQuiet, begin, contribute, host, isUp, status, until } from '../harness/table.mjs';

const MODELS = join(resolve(import.meta.dirname, '../..'), 'public/models');
const PROMPT = { max_tokens: 24, temperature: 0, raw: true };
// Long enough that a holder can die in the middle.
const LONG = { ...PROMPT, max_tokens: 60 };
const TEXT = 'Once upon a time there was a table';
/** Bytes of all experts of the embedded model. */
const EXPERTS = 16_736_256;

let relay;
const devices = {};
const undisturbed = {};
const floats = {};
const step = story();

before(async () => {
  relay = await Relay.start({ models: MODELS });
  for (const name of ['host', 'first', 'second']) devices[name] = await Device.start(name);
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await relay?.stop();
  await floats.relay?.stop();
});

/** Devices that hold experts for others. */
const holders = ({ plan }) => (plan?.experts?.holders ?? []).filter((holder) => holder.experts > 0);
/** Experts of one device's blocks lie on both others, and each has two holders. */
const isSpread = (status) => isUp(status) && holders(status).length === 2 && status.plan.experts.short === 0;

/** The card about the experts, opened. */
async function expertsCard(page) {
  const card = page.locator('details', { has: page.locator('summary', { hasText: /^Experts on/ }) });
  await card.waitFor();
  if ((await card.getAttribute('open')) === null) await card.locator('summary').click();
  return card;
}

step('a lone tab gives the answers that all others are held against', async () => {
  devices.alone = await Device.start('alone');
  const { page } = devices.alone;
  await host(page, relay, { share: 'Fastest', context: 512 });
  const { plan } = await until(page, isUp);
  const [{ bytes, kv_cache_bytes }] = plan.stages;
  undisturbed.pinned = plan.overhead + bytes - EXPERTS;
  undisturbed.cache = kv_cache_bytes;
  undisturbed.overhead = plan.overhead;
  const first = await ask(page, TEXT, PROMPT);
  undisturbed.short = first.tokens;
  const long = await ask(page, TEXT, LONG);
  undisturbed.long = long.tokens;
  undisturbed.timings = long.timings;
  assert.equal(undisturbed.short.length, PROMPT.max_tokens);
  assert.equal(undisturbed.long.length, LONG.max_tokens, 'the model must write enough to be disturbed');
});

const speeds = ({ first_token_ms, answer_tokens, decode_ms }) =>
  `first token after ${Math.round(first_token_ms)} ms, then ${(((answer_tokens - 1) * 1e3) / decode_ms).toFixed(1)} tokens a second`;

step('with memory for a third of the experts it loads the others on demand, from its cache, and gives the same answer', async (context) => {
  const { page } = devices.alone;
  // A part of the room for experts stays free.
  const third = undisturbed.pinned + undisturbed.cache + 1.03 * (EXPERTS / 3);
  await host(page, relay, { share: 'Fastest', context: 512, lends: Math.ceil(third) });
  const { plan, on_demand: before } = await until(page, (now) => isUp(now) && now.on_demand !== null, 'experts come on demand');
  assert.equal(plan.stages.length, 1);
  assert.ok(Math.abs(before.slots / before.experts - 1 / 3) < 0.05, JSON.stringify(before));
  assert.match(plan.reason, /^The model does not fit: one device answers and loads experts from its storage on demand/);
  const answer = await ask(page, TEXT, LONG);
  assert.deepEqual(answer.tokens, undisturbed.long);
  const { on_demand } = await until(page, ({ on_demand }) => on_demand.tokens >= LONG.max_tokens - 1, 'all tokens are counted');
  // Tokens that are checked together share experts.
  const used = (on_demand.hits + on_demand.misses) / on_demand.tokens;
  assert.ok(used > 12 && used <= 24, `six blocks, four experts each: ${JSON.stringify(on_demand)}`);
  assert.ok(on_demand.misses > 0 && on_demand.token_bytes > 0, JSON.stringify(on_demand));
  assert.equal(on_demand.token_network_bytes, 0, 'the visit before has filled the cache');
  await page.getByText(/^Each token loads [\d.]+ MB from this device's storage\. Of the \d+ experts that a token uses, \d+ were already in memory/).waitFor();
  context.diagnostic(`all experts: ${speeds(undisturbed.timings)}`);
  context.diagnostic(`a third: ${speeds(answer.timings)}; ${JSON.stringify(on_demand)}`);
});

/** Bytes of all experts of the model in floats. */
const FLOATS = 4 * 16 * 3 * 256 * 256 * 4;

step('where a smaller copy of the model would leave too little for it, one sentence says so and answers go on', async () => {
  floats.relay = await Relay.start({ models: make('floats') });
  devices.copier = await Device.start('copier');
  const { page } = devices.copier;
  const choice = { model: 'floats', share: 'Fastest', context: 512 };
  await host(page, floats.relay, choice);
  const { plan } = await until(page, isUp);
  const [{ bytes, kv_cache_bytes }] = plan.stages;
  floats.undisturbed = (await ask(page, TEXT, LONG)).tokens;
  const pinned = plan.overhead + bytes - FLOATS + kv_cache_bytes;
  floats.third = Math.ceil(pinned + 1.03 * (FLOATS / 3));
  const told = /A smaller copy of the model takes ([\d.]+) MB of GPU memory\. Of the [\d.]+ MB that this device lends, that leaves too little/;
  // The notice goes away by itself.
  const notice = page.getByText(told).first().innerText();
  await host(page, floats.relay, { ...choice, lends: Math.ceil(pinned + 1.03 * (FLOATS / 6)), guesser: 'copy' });
  const sentence = await notice;
  // Said in whole megabytes.
  floats.copy = (Number(told.exec(sentence)[1]) + 1) * 1e6;
  const { shadow } = await until(page, (now) => isUp(now) && now.on_demand !== null, 'experts come on demand');
  assert.equal(shadow, null);
  assert.deepEqual((await ask(page, TEXT, LONG)).tokens, floats.undisturbed);
});

step('a smaller copy of the model, made in the tab, guesses experts and changes no token', async (context) => {
  const { page } = devices.copier;
  const lends = floats.third + floats.copy;
  await host(page, floats.relay, { model: 'floats', share: 'Fastest', context: 512, lends, guesser: 'copy' });
  const { on_demand: before } = await until(page, (now) => isUp(now) && now.on_demand !== null, 'experts come on demand');
  assert.ok(before.slots < before.experts / 2, `the copy's memory is taken from what is lent: ${JSON.stringify(before)}`);
  const began = Date.now();
  assert.deepEqual((await ask(page, TEXT, LONG)).tokens, floats.undisturbed, 'perhaps while the copy is made');
  const { shadow } = await until(page, ({ shadow }) => shadow?.ready === true, 'the copy is made');
  context.diagnostic(`a copy that takes ${shadow.bytes} bytes, made within ${Date.now() - began} ms`);
  // Guesses are tried after 48 tokens, and not for all. On a busy software adapter the copy is in time for few of these.
  let guesses = null;
  for (let round = 0; round < 20 && !(guesses?.shadow > 0); round += 1) {
    assert.deepEqual((await ask(page, TEXT, LONG)).tokens, floats.undisturbed, `answer ${round}`);
    guesses = (await status(page)).on_demand.guesses;
  }
  context.diagnostic(JSON.stringify(guesses));
  assert.equal(guesses.predictor, 'shadow');
  assert.ok(guesses.shadow > 0 && guesses.shadow_tokens > 0, JSON.stringify(guesses));
  await page.getByText(/^Over [\d,]+ tokens?, a smaller copy of the model guessed \d+% of the experts that were used\. It takes [\d.]+ MB of memory\.( It also guessed tokens: .*)?$/).waitFor();
  await devices.copier.stop();
});

step('a cache that is evicted is fetched again, and the answer is the same', async () => {
  const { page } = devices.alone;
  await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    // The node closes files that it has not read for a moment.
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await root.removeEntry('weights', { recursive: true });
      } catch (error) {
        if (attempt === 100) throw error;
        await new Promise((done) => setTimeout(done, 100));
      }
    }
  });
  assert.deepEqual((await ask(page, TEXT, PROMPT)).tokens, undisturbed.short, 'also with other experts in the slots');
  await until(page, ({ on_demand }) => on_demand.token_network_bytes > 0, 'bytes came from the relay again');
});

step('with memory for less than the experts of a token it says how much is missing', async () => {
  const { page } = devices.alone;
  await host(page, relay, { share: 'Fastest', context: 512, lends: undisturbed.pinned });
  const refused = ({ plan }) => /With [\d.]+ [kM]?B more on one device its experts could be loaded on demand\.$/.test(plan?.reason);
  const { plan } = await until(page, refused);
  await page.getByText(plan.reason).first().waitFor();
  await devices.alone.stop();
});

step('the host spreads the experts over two more browsers', async () => {
  const { page } = devices.host;
  const link = await host(page, relay, { share: 'Spread the experts', context: 512 });
  await contribute(devices.first.page, link);
  await contribute(devices.second.page, link);
  const { plan } = await until(page, isSpread, 'two other devices hold the experts, each at least two of them');
  assert.equal(plan.sharing, 'Experts');
  const [stage, ...more] = plan.stages;
  assert.equal(more.length, 0, `one device keeps all blocks: ${JSON.stringify(plan.stages)}`);
  assert.ok(holders({ plan }).every(({ peer }) => peer !== stage.peer), JSON.stringify(plan.experts));
});

step('the answer is that of a lone tab', async () => {
  const answer = await ask(devices.host.page, TEXT, PROMPT);
  assert.deepEqual(answer.tokens, undisturbed.short);
});

step('the plan names the holders, and says what the round trips cost', async () => {
  const { page } = devices.host;
  const isMeasured = ({ plan }) => plan?.experts?.trips_ms > 0 && holders({ plan }).some(({ median_ms }) => median_ms > 0);
  // A plan that took over since the last answer was not measured yet: tokens tell.
  let now = await status(page);
  while (!isMeasured(now)) {
    const { epoch } = now.plan;
    await ask(page, TEXT, PROMPT);
    now = await until(page, (later) => isMeasured(later) || (isSpread(later) && later.plan.epoch !== epoch));
  }
  const { plan } = now;
  assert.ok(plan.experts.trips > 0 && plan.experts.trips <= 6, `six blocks: ${JSON.stringify(plan.experts)}`);
  const card = await expertsCard(page);
  await card.getByText(/^Experts on 2 other devices: \d round trips? per token, [\d.]+ m?s/).waitFor();
  const rows = card.getByRole('list', { name: 'Devices with experts' }).getByRole('listitem');
  await rows.nth(1).waitFor();
  const texts = await rows.allInnerTexts();
  assert.equal(texts.length, 2, texts.join(' | '));
  for (const text of texts) assert.match(text, /\d+ experts?, [\d.]+ MB/, texts.join(' | '));
  assert.ok(texts.some((text) => /per request, 95% within/.test(text)), texts.join(' | '));
});

step('the room explains the plan and counts who computed how much', async () => {
  const { page } = devices.host;
  const { plan } = await until(page, (status) => status.plan.spreading !== null, 'both ways to place experts are compared');
  assert.match(plan.spreading, /^Experts are spread/);
  await page.getByText(/^Experts are spread/).first().waitFor();
  const { credits } = await until(page, ({ credits }) => credits.filter(({ work }) => work.tokens > 0).length >= 2);
  for (const { peers } of credits) assert.ok(peers.length <= 1, `browsers share a key: ${JSON.stringify(credits)}`);
  for (const { work } of credits) assert.ok(work.gpu_millis > 0, JSON.stringify(credits));
});

step('a device with experts alone says so on its own page', async () => {
  const { plan } = await status(devices.host.page);
  for (const name of ['first', 'second']) {
    const { page } = devices[name];
    const { peer } = await status(page);
    if (plan.stages.some((stage) => stage.peer === peer)) continue;
    await page.getByText(/\d+ experts, no blocks/).first().waitFor();
  }
});

step('a holder is killed in the middle of an answer: the text is the same, and the room names the loss', async () => {
  const { page } = devices.host;
  const { plan } = await status(page);
  const [stage] = plan.stages;
  const peers = {};
  for (const name of ['first', 'second']) peers[name] = (await status(devices[name].page)).peer;
  const victim = ['second', 'first'].find((name) => peers[name] !== stage.peer);
  const { asked } = await begin(page, TEXT, LONG, 10);
  // The notice goes away by itself.
  const told = page.getByText(/left\. Others hold its experts too, so answers go on\./).first().waitFor();
  await devices[victim].kill();
  const [answer] = await Promise.all([asked, told]);
  assert.deepEqual(answer.tokens, undisturbed.long, 'the answer must be the undisturbed one');
  const left = await until(page, ({ peers: members }) => members.every(({ peer }) => peer !== peers[victim]));
  assert.ok(holders(left).every(({ peer }) => peer !== peers[victim]), JSON.stringify(left.plan));
  await devices[victim].forget();
  delete devices[victim];
});

step('afterwards each expert has its copies again, or the room says which number has not', async () => {
  const { page } = devices.host;
  // The host loads some, too.
  const settled = ({ plan }) => isUp({ plan }) && plan.experts !== null && plan.experts.holders.every(({ ordered }) => ordered === 0);
  const isTold = async ({ short, wanted_holders }) => {
    const words = short === 1 ? '1 expert has' : `${short} experts have`;
    return short === 0 || (await (await expertsCard(page)).getByText(`${words} fewer than ${wanted_holders} holders.`).isVisible());
  };
  // Between two orders nobody loads either.
  for (let look = 0; !(await isTold((await until(page, settled, 'nobody loads experts any more')).plan.experts)); look += 1) {
    assert.ok(look < 300, 'the room says how many experts have too few holders');
    await page.waitForTimeout(200);
  }
  const answer = await ask(page, TEXT, PROMPT);
  assert.deepEqual(answer.tokens, undisturbed.short);
});

step('three browsers with slots for a sixth of the experts each load what is called, and give the same answer', async (context) => {
  const slots = Math.ceil(1.03 * (EXPERTS / 6));
  const { page } = devices.host;
  const link = await host(page, relay, { share: 'Spread the experts', context: 512, lends: undisturbed.pinned + undisturbed.cache + slots });
  devices.newcomer = await Device.start('newcomer');
  const others = ['first', 'second', 'newcomer'].map((name) => devices[name]).filter(Boolean);
  for (const other of others) await contribute(other.page, link, { lends: undisturbed.overhead + slots });
  const { plan } = await until(page, (now) => isUp(now) && now.on_demand !== null && holders(now).length === 2, 'three devices have slots');
  assert.match(plan.reason, /^The model does not fit: 3 devices share its experts and load them from their storage on demand/);
  const answer = await ask(page, TEXT, LONG);
  assert.deepEqual(answer.tokens, undisturbed.long);
  for (const { page } of [devices.host, ...others]) {
    const { on_demand } = await until(page, ({ on_demand }) => on_demand?.misses > 0, 'its loads are counted');
    assert.ok(on_demand.slots < on_demand.experts / 2, JSON.stringify(on_demand));
    context.diagnostic(JSON.stringify(on_demand));
  }
  context.diagnostic(`a sixth on each of three: ${speeds(answer.timings)}`);
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
