// What the browser refuses for the page: text never becomes markup or a program, whoever puts it there.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { assertQuiet, contribute, host, isUp, send, status, until } from '../harness/table.mjs';

const HOSTILE = '<img src=x onerror="window.hurt = true">';

let relay;
let device;
let link;
/** All that the consoles said of a policy. */
const policies = [];

function listen(page) {
  page.on('console', (message) => {
    if (/policy|Trusted|refused/i.test(message.text())) policies.push(message.text());
  });
}

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  device = await Device.start('host');
  listen(device.page);
  await device.page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
  });
});

after(async () => {
  await device?.stop();
  await relay?.stop();
});

const violations = () => device.page.evaluate(() => window.violations);

test('the page, its workers and its WebAssembly do nothing that the policies forbid', async () => {
  const { page } = device;
  link = await host(page, relay, { model: 'tiny' });
  await until(page, isUp);
  await send(page, HOSTILE);
  await page.locator('.question', { hasText: 'onerror' }).waitFor();
  await until(page, (status) => status.tokens > 0);
  await page.getByText('Speed over time').click();
  await page.locator('.timeline-picture svg path.rate').waitFor();
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByText(/Free software/).waitFor();
  assert.deepEqual(await violations(), [], 'in a room');
  await page.goto(`${relay.url}/bench`);
  await page.getByRole('heading').first().waitFor();
  assert.deepEqual(await violations(), [], 'on the bench');
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).waitFor();
  assert.deepEqual(await violations(), [], 'at the door');
  assert.deepEqual(policies, [], 'no console says a word about a policy');
  assertQuiet(device);
});

test('a name with markup stays text in the picture of the room', async () => {
  const { page } = device;
  link = await host(page, relay, { model: 'tiny' });
  await until(page, isUp);
  const guest = await Device.start('guest');
  try {
    listen(guest.page);
    await guest.page.goto(relay.url);
    await guest.page.getByRole('button', { name: 'Settings' }).click();
    const name = guest.page.getByLabel(/name/i).first();
    await name.fill(HOSTILE.slice(0, 40));
    await name.press('Tab');
    await guest.page.keyboard.press('Escape');
    await contribute(guest.page, link);
    await until(page, (status) => status.peers.length === 2);
    const summary = page.getByText('Speed over time');
    await summary.click();
    await page.locator('.timeline-picture text', { hasText: '<img src=x' }).waitFor();
    assert.equal(await page.locator('.timeline-picture img').count(), 0);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    assert.deepEqual(policies, []);
  } finally {
    await guest.stop();
  }
});

test('a string that is given to the page as markup or as a script is refused', async () => {
  const { page } = device;
  const refusals = await page.evaluate((hostile) => {
    const tries = {
      innerHTML: () => { document.body.innerHTML = hostile; },
      outerHTML: () => { document.body.lastElementChild.outerHTML = hostile; },
      insertAdjacentHTML: () => document.body.insertAdjacentHTML('beforeend', hostile),
      'document.write': () => document.write(hostile),
      srcdoc: () => { document.createElement('iframe').srcdoc = hostile; },
      'script.text': () => { document.createElement('script').text = 'window.hurt = true'; },
      'script.src': () => { document.createElement('script').src = '/node_loader.js'; },
      Worker: () => new Worker('/node_loader.js'),
      'another policy': () => trustedTypes.createPolicy('another', { createHTML: (text) => text }),
      'the same policy again': () => trustedTypes.createPolicy('potluck', { createHTML: (text) => text }),
      'a default policy': () => trustedTypes.createPolicy('default', { createHTML: (text) => text }),
    };
    return Object.entries(tries).map(([name, act]) => {
      try {
        act();
        return [name, 'done'];
      } catch (error) {
        return [name, error.name];
      }
    });
  }, HOSTILE);
  for (const [name, outcome] of refusals) assert.equal(outcome, 'TypeError', `${name} is refused`);
  assert.equal(await page.evaluate(() => window.hurt), undefined, 'nothing of it ran');
  // The page is as it was.
  assert.ok(await status(page));
});

test('the page may use nothing of the browser that it does not use', async () => {
  const { page } = device;
  const allowed = await page.evaluate(() => {
    const features = ['camera', 'microphone', 'geolocation', 'clipboard-read', 'clipboard-write', 'screen-wake-lock', 'cross-origin-isolated'];
    return features.filter((feature) => document.featurePolicy.allowsFeature(feature));
  });
  assert.deepEqual(allowed, ['clipboard-write', 'screen-wake-lock', 'cross-origin-isolated']);
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
});
