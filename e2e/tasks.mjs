// Five tasks as somebody does them who has no mouse: by touch on a phone, and by keyboard alone on a desktop. Prints how many presses
// and seconds each takes, and fails if something is out of reach: `node tasks.mjs` after `cargo xtask build`.
import { Device } from './harness/browser.mjs';
import { write } from './harness/reciting.mjs';
import { Relay } from './harness/relay.mjs';
import { isUp, status, until } from './harness/table.mjs';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Nobody presses Tab more often for one button. */
const PATIENCE = 60;
const ANSWER = 'Soup is hot.';

/** Somebody who taps what they see. */
class Finger {
  static viewport = { width: 390, height: 844 };
  static page = { hasTouch: true, isMobile: true };

  constructor(page) {
    Object.assign(this, { page, presses: 0 });
  }

  async press(name) {
    await this.named(name).tap();
    this.presses += 1;
  }

  async write(name, text) {
    await this.press(name);
    await this.page.keyboard.insertText(text);
  }

  /** What has this name, in the dialog if one is open. */
  named(name) {
    const { page } = this;
    const inside = page.locator('dialog[open]').last();
    const [dialog, whole] = [inside, page].map((place) => place.getByRole('button', { name }).or(place.getByRole('textbox', { name })).or(place.getByRole('searchbox', { name })));
    return dialog.or(whole).first();
  }

  async enter(name) {
    await this.press(name);
  }
}

/** Somebody who goes from one element to the next until the right one has the focus. */
class Keyboard {
  static viewport = { width: 1280, height: 800 };
  static page = {};

  constructor(page) {
    Object.assign(this, { page, presses: 0 });
  }

  async focus(name) {
    for (let tabs = 0; tabs <= PATIENCE; tabs += 1) {
      const focused = await this.page.evaluate(() => {
        const { activeElement: at } = document;
        return at?.ariaLabel ?? at?.labels?.[0]?.textContent ?? at?.textContent ?? '';
      });
      if (name.test(focused.trim())) return;
      await this.page.keyboard.press('Tab');
      this.presses += 1;
    }
    throw new Error(`${name} is not within ${PATIENCE} presses of Tab`);
  }

  async press(name) {
    await this.focus(name);
    await this.page.keyboard.press('Enter');
    this.presses += 1;
  }

  async write(name, text) {
    await this.focus(name);
    await this.page.keyboard.press('ControlOrMeta+A');
    await this.page.keyboard.type(text);
  }

  async enter() {
    await this.page.keyboard.press('Enter');
    this.presses += 1;
  }
}

const answers = (page, count) => page.locator('.answer:not(.answer-running) .prose', { hasText: ANSWER }).nth(count - 1).waitFor();

/** The tasks, of a host and of whoever comes to its room. */
const TASKS = {
  'host the model': async ({ host, relay }) => {
    await host.page.goto(relay.url);
    await host.page.getByRole('button', { name: 'Host a model' }).waitFor();
    await host.press(/^Host a model/);
    await host.page.locator('button:enabled', { hasText: 'Open the room' }).waitFor();
    await host.press(/^Open the room$/);
    await until(host.page, isUp);
  },
  'invite somebody': async ({ host }) => {
    if (host instanceof Finger) await host.press(/device.*ready/);
    await host.press(/^Invite$/);
    await host.page.locator('dialog[open]').waitFor();
    await host.press(/^Copy/);
    await host.page.keyboard.press('Escape');
    host.presses += 1;
    await host.page.locator('dialog[open]').waitFor({ state: 'hidden' });
    if (host instanceof Finger) await host.press(/device.*ready/);
  },
  'contribute': async ({ host, guest, relay }) => {
    await guest.page.goto(relay.url + (await status(host.page)).room.link);
    await guest.page.getByRole('button', { name: 'Contribute GPU' }).waitFor();
    await guest.press(/^Contribute GPU/);
    await until(guest.page, ({ role, plan }) => role.worker && plan?.state === 'Up');
  },
  'chat, edit and search': async ({ host: { page }, host }) => {
    await host.write(/^Message$/, 'Is soup cold?');
    await host.enter(/^Send$/);
    await answers(page, 1);
    await host.press(/^Edit question$/);
    await host.write(/^Your question$/, 'Is soup hot?');
    await host.enter(/^Ask again$/);
    await page.locator('.question', { hasText: 'Is soup hot?' }).waitFor();
    await answers(page, 1);
    await host.press(/^Chats$/);
    await host.write(/^Search/, 'hot');
    const found = page.locator('dialog[open]').getByRole('button', { name: /^Is soup/ });
    await found.first().waitFor();
    await host.press(/^Is soup/);
    await page.locator('dialog[open]').waitFor({ state: 'hidden' });
  },
  'leave': async ({ host }) => {
    await host.press(/^Leave the room$/);
    await host.page.locator('dialog[open]').waitFor();
    await host.press(/^End the room$/);
    await host.page.getByRole('button', { name: 'Host a model' }).waitFor();
  },
};

/** Presses and seconds of each task, done with `Hand`. */
async function done(Hand, models) {
  const relay = await Relay.start({ models });
  const devices = [];
  try {
    const hand = async (name) => {
      const device = await Device.start(name, { viewport: Hand.viewport, page: Hand.page });
      devices.push(device);
      return new Hand(device.page);
    };
    const world = { relay, host: await hand('host'), guest: await hand('guest') };
    const figures = [];
    for (const [task, act] of Object.entries(TASKS)) {
      const [presses, begun] = [world.host.presses + world.guest.presses, performance.now()];
      try {
        await act(world);
      } catch (error) {
        throw new Error(`${Hand.name}, ${task}: ${error.message}`, { cause: error });
      }
      figures.push({ task, presses: world.host.presses + world.guest.presses - presses, seconds: (performance.now() - begun) / 1000 });
    }
    const errors = devices.flatMap(({ errors }) => errors);
    if (errors.length > 0) throw new Error(`${Hand.name}: ${errors.join('\n')}`);
    return figures;
  } finally {
    for (const device of devices) await device.stop();
    await relay.stop();
  }
}

const models = mkdtempSync(join(tmpdir(), 'potluck-tasks-'));
try {
  write(join(models, 'soup.gguf'), { name: 'soup', text: ANSWER });
  const touch = await done(Finger, models);
  const keys = await done(Keyboard, models);
  console.log('| task | touch, 390 px: presses | s | keyboard, 1280 px: presses | s |\n|---|---|---|---|---|');
  for (const [at, { task, presses, seconds }] of touch.entries()) {
    console.log(`| ${task} | ${presses} | ${seconds.toFixed(1)} | ${keys[at].presses} | ${keys[at].seconds.toFixed(1)} |`);
  }
} finally {
  rmSync(models, { recursive: true, force: true });
}
