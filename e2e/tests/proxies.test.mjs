// The three presses through a proxy that shows the relay in a folder of a site: nginx, Caddy and HAProxy, with the files of relay/deploy.
// By command: POTLUCK_PROXIES=1 node --test tests/proxies.test.mjs. Continuous integration has a guest behind HAProxy in three-presses.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { PROXIES, Proxy, TRUSTING, missing } from '../harness/proxy.mjs';
import { Relay } from '../harness/relay.mjs';
import { ask, assertQuiet, contribute, enter, host, isUp, isUpOn, until } from '../harness/table.mjs';

const PROMPT = { max_tokens: 8, temperature: 0, raw: true };

const skipped = (kind) => (process.env.POTLUCK_PROXIES ? missing(kind) : 'by command');

for (const kind of PROXIES) {
  test(`host, contribute and chat in a folder behind ${kind}`, { skip: skipped(kind) }, async (t) => {
    const relay = await Relay.start({ models: make('six-blocks'), args: ['--trusted-proxy', '127.0.0.1'] });
    const proxy = await Proxy.start(kind, relay);
    const devices = [];
    t.after(async () => {
      for (const device of devices) await device.stop();
      await proxy.stop();
      await relay.stop();
    });
    for (const name of ['host', 'contributor', 'guest']) devices.push(await Device.start(name, TRUSTING));
    const [first, second, guest] = devices.map(({ page }) => page);

    const link = await host(first, proxy, { model: 'six-blocks', share: 'Everyone takes part', context: 512 });
    assert.ok(link.startsWith(`${proxy.url}/r/`), link);
    assert.equal(new URL(first.url()).pathname, new URL(link).pathname, 'the address bar names the room in its folder');
    await until(first, isUp);
    const alone = await ask(first, 'Hello', PROMPT);
    await contribute(second, link);
    await until(first, isUpOn(2));
    await enter(guest, link);
    await until(guest, isUp);
    assert.deepEqual((await ask(guest, 'Hello', PROMPT)).tokens, alone.tokens);

    // The link that is shown, as text and QR code, and where reloads and other places of the page are.
    await guest.getByRole('button', { name: 'Invite' }).click();
    await guest.getByText(link, { exact: true }).waitFor();
    await guest.reload();
    await until(guest, isUp);
    assert.deepEqual((await ask(guest, 'Hello', PROMPT)).tokens, alone.tokens, 'after a reload');
    const visitor = await devices[2].newTab();
    await visitor.goto(`${proxy.url}/bench`);
    await visitor.getByRole('link', { name: 'Potluck' }).click();
    assert.equal(visitor.url(), `${proxy.url}/`);
    await visitor.goto(`${proxy.url}/nothing/here`);
    await visitor.getByRole('link', { name: 'Go to the front page' }).click();
    await visitor.getByRole('button', { name: 'Host a model' }).waitFor();
    devices[2].errors = devices[2].errors.filter((error) => !error.includes('/nothing/here'));
    assertQuiet(...devices);
  });
}

test('in a folder, whoever may not open a room reads why, enters the token and may', { skip: skipped('nginx') }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'potluck-token-'));
  const file = join(folder, 'token');
  await writeFile(file, 'a-token-of-this-school\n');
  const relay = await Relay.start({ models: make('tiny'), args: ['--trusted-proxy', '127.0.0.1', '--create-token-file', file] });
  const proxy = await Proxy.start('nginx', relay);
  const device = await Device.start('host', TRUSTING);
  t.after(async () => {
    await device.stop();
    await proxy.stop();
    await relay.stop();
    await rm(folder, { recursive: true });
  });
  const { page } = device;
  await page.goto(`${proxy.url}/`);
  await page.getByRole('button', { name: 'Host a model' }).click();
  await page.getByRole('button', { name: 'Open the room' }).click();
  await page.getByText("Only people with this relay's token may open rooms here").first().waitFor();
  await page.goto(`${proxy.url}/access`);
  const enter = async (token) => {
    await page.getByLabel('Token of this relay').fill(token);
    await page.getByRole('button', { name: 'Continue' }).click();
  };
  await enter('a-token-of-another-school');
  await page.getByText('This is not the token of this relay.').waitFor();
  await enter('a-token-of-this-school');
  await page.waitForURL(`${proxy.url}/`);
  await host(page, proxy, { model: 'tiny', context: 512 });
  await until(page, isUp);
});
