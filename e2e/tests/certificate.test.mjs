// The relay's own certificate: a browser that has installed its authority is not warned, and one that has not is helped.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { ask, assertQuiet, host, isUp, until } from '../harness/table.mjs';

let relay;
let port;
/** Addresses of this machine under which others reach the relay. */
let addresses;
/** A home folder whose browser trusts the authority. */
let home;

before(async () => {
  relay = await Relay.start({ models: make('tiny'), local: false });
  ({ port } = new URL(relay.url));
  addresses = await (await fetch(`${relay.url}/addresses`)).json();
  home = await mkdtemp(join(tmpdir(), 'potluck-home-'));
  const [store, file] = [join(home, '.pki/nssdb'), join(home, 'potluck.pem')];
  await mkdir(store, { recursive: true });
  await writeFile(file, await (await fetch(`${relay.url}/certificate/potluck.pem`)).text());
  // What the help page says, for a folder of its own.
  const certutil = (...args) => execFileSync('certutil', ['-d', `sql:${store}`, ...args]);
  certutil('-N', '--empty-password');
  certutil('-A', '-t', 'C,,', '-n', 'potluck', '-i', file);
});

after(async () => {
  await relay?.stop();
  if (home) await rm(home, { recursive: true, force: true });
});

const trusting = () => Device.start('trusting', { page: { env: { ...process.env, HOME: home } } });
/** Where a phone reaches the relay; this machine itself if it is on no network. */
const elsewhere = () => addresses.urls[0] ?? `https://localhost:${port}`;
const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

test('with the authority installed, every address opens without a warning, and a room works', async () => {
  const device = await trusting();
  try {
    const { page } = device;
    const hasIpv6 = Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1');
    const here = ['localhost', '127.0.0.1', ...(hasIpv6 ? ['[::1]'] : [])].map((name) => `https://${name}:${port}`);
    for (const url of [...here, ...addresses.urls]) {
      await page.goto(`${url}/`);
      assert.equal(await page.evaluate(() => isSecureContext), true, url);
    }
    await host(page, { url: elsewhere() }, { model: 'tiny' });
    await until(page, isUp);
    assert.equal((await ask(page, 'Hello', { max_tokens: 8, temperature: 0, raw: true })).tokens.length, 8, 'an answer comes');
    assertQuiet(device);
  } finally {
    await device.stop();
  }
});

test('the help page sends a device that trusts the relay on, and helps another', async () => {
  const help = `${elsewhere().replace('https:', 'http:')}/certificate`;
  const device = await trusting();
  try {
    await device.page.goto(help);
    if (addresses.urls.length > 0) {
      await device.page.waitForURL(`${elsewhere()}/`);
    }
    await device.page.goto(`${elsewhere()}/certificate`);
    await device.page.getByText('This device trusts this relay').waitFor();
  } finally {
    await device.stop();
  }
  for (const colorScheme of ['light', 'dark']) {
    const stranger = await Device.start('stranger', { viewport: { width: 390, height: 844 }, colorScheme });
    try {
      const { page } = stranger;
      await page.goto(help);
      // `socket` is the page's own.
      await page.evaluate(() => new Promise((tried) => {
        if (socket.readyState === WebSocket.CLOSED) tried();
        socket.addEventListener('close', tried);
      }));
      assert.equal(await page.getByText('This device trusts this relay').isVisible(), false);
      for (const system of await page.locator('summary').all()) {
        if ((await system.evaluate((summary) => summary.parentElement.open)) === false) await system.click();
        assert.equal(await sideways(page), 0, `${colorScheme}: ${await system.textContent()}`);
      }
      await page.locator('summary', { hasText: 'iPhone' }).click();
      if (process.env.POTLUCK_PICTURES) await page.screenshot({ path: `${process.env.POTLUCK_PICTURES}/certificate-${colorScheme}.png`, fullPage: true });
      await assert.rejects(page.goto(`${elsewhere()}/`), /ERR_CERT_AUTHORITY_INVALID/);
    } finally {
      await stranger.stop();
    }
  }
});

/** A server before the relay that passes requests on and no sockets, as a browser does that trusts a page and not its sockets. */
function withoutSockets() {
  const server = createServer((from, to) => {
    const passed = request({ port, path: from.url, method: from.method, headers: from.headers }, (answer) => {
      to.writeHead(answer.statusCode, answer.headers);
      answer.pipe(to);
    });
    from.pipe(passed);
  });
  server.on('upgrade', (_, socket) => socket.destroy());
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

test('a page whose requests work and whose sockets do not says exactly that', async () => {
  const server = await withoutSockets();
  const device = await Device.start('refused');
  try {
    const { page } = device;
    await page.goto(`http://localhost:${server.address().port}`);
    await page.getByRole('button', { name: 'Host a model' }).click();
    await page.getByRole('button', { name: 'Open the room' }).click();
    await page.getByRole('heading', { name: 'This browser can load the page, but cannot open a live connection (WebSocket) to the relay' }).waitFor();
    const help = page.getByRole('link', { name: 'Install the certificate' });
    assert.equal(await help.evaluate((link) => link.href), new URL('/certificate', page.url()).href);
  } finally {
    await device.stop();
    server.closeAllConnections();
    server.close();
  }
});
