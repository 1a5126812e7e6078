// "Why this plan?" in five rooms: one device; a phone behind a slow line; experts pooled; not enough memory; two equal devices. The
// card says what the host compared, with the numbers that it decided by. POTLUCK_RECORD=FOLDER keeps what it said, and pictures.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { SlowLine } from '../harness/slow_line.mjs';
import { story } from '../harness/story.mjs';
import { MB, assertQuiet, contribute, eventually, host, isUp, until } from '../harness/table.mjs';

const MODELS = join(resolve(import.meta.dirname, '../..'), 'public/models');
const NARROW = { width: 390, height: 844 };
const WIDE = { width: 1280, height: 800 };
const ANDROID = 'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Mobile Safari/537.36';
/** Milliseconds that each message of the phone waits. */
const LATE = 150;
// One tab with so much is too small for the model of six blocks, two are enough.
const LENDS = 40 * MB;
const folder = process.env.POTLUCK_RECORD;

let relay;
let six;
let line;
let link;
const devices = {};
const recorded = [];
const step = story();

before(async () => {
  relay = await Relay.start({ models: MODELS });
  six = await Relay.start({ models: make('six-blocks') });
  line = await SlowLine.to(relay, LATE);
  devices.host = await Device.start('host');
  devices.phone = await Device.start('phone', { viewport: NARROW, colorScheme: 'dark', args: [`--user-agent=${ANDROID}`] });
});

after(async () => {
  if (folder && recorded.length > 0) await writeFile(join(folder, 'why-this-plan.txt'), recorded.join('\n\n'));
  for (const device of Object.values(devices)) await device.stop();
  await line?.stop();
  await relay?.stop();
  await six?.stop();
});

/** As the page writes milliseconds. */
const millis = (value) => (value < 9.95 ? `${value.toFixed(1)} ms` : value < 999.5 ? `${value.toFixed(0)} ms` : `${(value / 1e3).toFixed(1)} s`);
const card = (page) => page.locator('details', { has: page.locator('summary', { hasText: /^Why (this plan|is there no plan)\?$/ }) });

/** Opens the card as somebody without a mouse does. */
async function open(page) {
  const found = card(page);
  await found.waitFor();
  if ((await found.getAttribute('open')) === null) await found.locator('summary').press('Enter');
  await found.getByText(/^Times are what this device expected|^This is what the host tells/).waitFor();
  return found;
}

/** Waits until the host has decided so, and the card says the sentences that follow from it. Returns both. */
async function says(page, decided, sentences) {
  const found = await open(page);
  const read = async () => {
    const { why, plan } = await page.evaluate(() => window.potluck.status());
    return { why, plan, text: (await found.innerText()).replaceAll(/\s+/g, ' ') };
  };
  const isSaid = ({ why, text }) => why !== null && decided(why) && sentences(why).every((sentence) => text.includes(sentence));
  return eventually(read, isSaid, `${decided}, then ${sentences}`);
}

/** Keeps what the card says, and how it looks: wide and narrow, light and dark. */
async function record(page, name) {
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  recorded.push(`## ${name}\n\n${(await card(page).innerText()).replaceAll(/\n+/g, '\n')}`);
  for (const [size, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      await unfold(page);
      await card(page).scrollIntoViewIfNeeded();
      await page.screenshot({ path: join(folder, `${name.replaceAll(' ', '-')}-${size}-${colorScheme}.png`) });
    }
  }
  await page.setViewportSize(WIDE);
}

/** On narrow screens the table is folded into a strip. */
async function unfold(page) {
  const strip = page.locator('button[aria-controls=table]');
  if ((await strip.isVisible()) && (await strip.getAttribute('aria-expanded')) === 'false') await strip.click();
}

/** The parts of the devices that have one; why the others have none. */
const parts = (why) => why.devices.flatMap(({ place }) => place.Has ?? []);
const tooSlow = (why) => why.devices.flatMap(({ place }) => place.LeftOut?.TooSlow ?? [])[0];

step('one device: it is the only one that lends, and another plan would have to beat its time', async () => {
  const { page } = devices.host;
  link = await host(page, relay, { share: 'Fastest', context: 512 });
  await until(page, isUp);
  const { why, text } = await says(
    page,
    ({ plan, devices }) => plan.Kept?.reason === 'IsBest' && devices.length === 1,
    ({ plan: { Kept: { compared } } }) => [`It should take ${millis(compared.active_ms)} per token, and no other plan is expected to be faster.`, `Time to beat ${millis(compared.needed_ms)}`],
  );
  const { active_ms, needed_ms } = why.plan.Kept.compared;
  assert.ok(needed_ms < active_ms && active_ms > 0, JSON.stringify(why));
  assert.equal(parts(why)[0].why, 'OnlyDevice');
  assert.match(text, /This device computes 6 blocks, [\d.]+ m?s per token\. It is the only device that lends memory\./);
  assert.match(text, /This is the best plan for the memory lent\. Each token should take [\d.]+ m?s\./);
  const found = card(page);
  await found.getByRole('table', { name: 'Expected time per token' }).waitFor();
  await found.getByRole('list', { name: 'Devices' }).getByRole('listitem').waitFor();
  await record(page, 'one device');
});

step('a phone behind a slow line: it is left out, with the time of a token with it and without', async () => {
  const { page } = devices.host;
  await contribute(devices.phone.page, line.through(link));
  const { why } = await says(
    page,
    (why) => tooSlow(why) && why.plan.Kept,
    (why) => {
      const { with_ms, without_ms } = tooSlow(why);
      return [`is a spare: a token would take ${millis(with_ms)} with it, and takes ${millis(without_ms)} without.`];
    },
  );
  const { with_ms, without_ms } = tooSlow(why);
  // How much slower depends on what both computers measure under load; that the line counts whole is tested by the simulator.
  assert.ok(with_ms > Math.max(without_ms, 2 * LATE), `there and back: ${JSON.stringify(why)}`);
  await record(page, 'a slow phone left out');
});

step('the phone sees what the host tells the room, at 390 pixels', async () => {
  const { page } = devices.phone;
  await unfold(page);
  const found = await open(page);
  await found.getByText(/^One device holds the whole model/).waitFor();
  await found.getByText(/This device: With this phone, each token would take \d+ ms longer\./).waitFor();
  const { why } = await page.evaluate(() => window.potluck.status());
  assert.equal(why, null, 'only the host knows what it compared');
  const [needed, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(needed <= shown, `${needed} pixels in a window of ${shown}`);
  if (folder) await page.screenshot({ path: join(folder, 'a-phone-sees-narrow-dark.png') });
});

step('experts pooled: who holds them, and what spreading them costs', async () => {
  const { page } = devices.host;
  await page.getByLabel('Spread the experts').check();
  const holding = (why) => parts(why).find(({ experts }) => experts > 0);
  const isSpread = (why) => holding(why) && why.spreading !== null && why.plan.Kept;
  const { why, text } = await says(page, isSpread, (why) => {
    const { spreading } = why;
    return [`holds ${holding(why).experts} experts for others`, `round trips per token ${millis(spreading.spread_ms)}`, `experts not spread ${millis(spreading.whole_ms)}`];
  });
  assert.ok(why.spreading.spread_ms > why.spreading.whole_ms, JSON.stringify(why.spreading));
  assert.match(text, /You chose to spread the experts over the devices\./);
  assert.match(text, /You chose another way to share the work\./);
  await record(page, 'experts pooled');
});

step('the recording tells the decisions with their types and numbers', async () => {
  const lines = await devices.host.page.evaluate(() => window.potluck.trace());
  const decisions = lines.filter(({ kind }) => kind === 'decision');
  const replaced = decisions.flatMap(({ decision }) => decision.Plan?.Replaced?.reason ?? []);
  assert.deepEqual([replaced[0], replaced.at(-1)], ['First', 'SharingChanged'], JSON.stringify(decisions));
  assert.ok(decisions.every(({ what }) => what.endsWith('.')), JSON.stringify(decisions));
  assert.ok(decisions.length < 40, `${decisions.length} decisions`);
  const others = await devices.phone.page.evaluate(() => window.potluck.trace());
  assert.ok(others.every(({ kind }) => kind !== 'decision'), 'the phone decides nothing');
});

step('not enough memory: how much the model needs, and how much is missing', async () => {
  const { page } = devices.host;
  link = await host(page, six, { model: 'six-blocks', lends: LENDS, share: 'Fastest', context: 512 });
  const { why, text } = await says(
    page,
    ({ plan, devices }) => plan.NoPlan?.reason.NotEnoughMemory && devices.length === 1,
    () => ['The model cannot run: it needs', 'and the devices lend 40 MB'],
  );
  const { needed, offered, missing } = why.plan.NoPlan.reason.NotEnoughMemory;
  assert.equal(offered, LENDS);
  assert.equal(missing, needed - offered);
  assert.match(text, /Why is there no plan\?.*What would change this If the devices lend [\d.]+ MB more\./);
  await record(page, 'not enough memory');
});

step('two equal devices: both are needed for their memory', async () => {
  const { page } = devices.host;
  // The browser remembers what the host lends.
  const second = await devices.host.newTab();
  await contribute(second, link);
  await until(page, isUp);
  await page.bringToFront();
  const { why, text } = await says(
    page,
    (why) => why.chosen !== null && parts(why).filter((part) => part.why.NeededForMemory).length === 2,
    () => ['Without it the model does not fit: the model needs', 'and the other devices lend only 40 MB'],
  );
  assert.equal(parts(why).reduce((blocks, part) => blocks + part.blocks, 0), 6);
  assert.equal(text.match(/Without it the model does not fit/g).length, 2);
  await record(page, 'two equal devices');
});

step('no console shows an error', () => {
  assertQuiet(...Object.values(devices));
});
