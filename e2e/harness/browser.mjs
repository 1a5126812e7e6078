// Real browsers with WebGPU on a software adapter, Chromium unless a test asks for Firefox; one persistent profile a device.
import { mkdtemp, rm } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

import * as firefox from './firefox.mjs';

const executablePath = process.env.POTLUCK_CHROMIUM ?? '/usr/bin/chromium';

// Chromium takes only the last of several --disable-features: everything is merged here.
const flags = [
  '--headless=new',
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider',
];
const webgpu = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
// All flags of a browser on a real GPU, which may need a window: for measuring.
const real = process.env.POTLUCK_CHROMIUM_FLAGS?.split(' ').filter(Boolean);
const ours = ['--headless', '--disable-gpu', '--hide-scrollbars', '--mute-audio', '--disable-field-trial-config'];

async function launchChromium(profile, options) {
  const { gpu = true, viewport = { width: 1280, height: 800 }, colorScheme = 'light', args = [], page = {}, keepsPages = false } = options;
  return chromium.launchPersistentContext(profile, {
    executablePath,
    headless: !real?.includes('--ozone-platform=x11'),
    args: real ? [...real, ...args] : [...flags, ...(gpu ? webgpu : ['--disable-features=WebGPU', '--disable-webgpu']), ...args],
    ignoreDefaultArgs: keepsPages ? [...ours, '--disable-back-forward-cache'] : ours,
    viewport,
    colorScheme,
    ...page,
  });
}

/** What each page said on its console, the latest last. */
const said = new WeakMap();
export const consoleOf = (page) => said.get(page) ?? [];

/** One person's browser, with a profile of its own that outlives a restart. `engine: 'firefox'` makes it a Firefox; with `keepsPages` a page
 * that is left sleeps in the browser's back/forward cache and wakes as it was, as in everybody's browser; `fill` writes into the new profile's
 * folder first. */
export class Device {
  static async start(name, options = {}) {
    const device = new Device();
    device.name = name;
    device.options = options;
    device.profile = await mkdtemp(join(tmpdir(), 'potluck-profile-'));
    await options.fill?.(device.profile);
    await device.launch();
    return device;
  }

  async launch() {
    this.errors = [];
    this.context = await (this.options.engine === 'firefox' ? firefox.launch : launchChromium)(this.profile, this.options);
    await this.options.prepare?.(this.context);
    this.page = this.context.pages()[0] ?? (await this.context.newPage());
    this.watch(this.page);
  }

  watch(page) {
    page.setDefaultTimeout(120_000);
    const lines = [];
    said.set(page, lines);
    page.on('console', (message) => {
      lines.push(`${message.type()}: ${message.text()}`);
      if (message.type() === 'error') this.errors.push([message.text(), message.location().url].filter(Boolean).join(' at '));
    });
    page.on('pageerror', (error) => {
      lines.push(`uncaught: ${error}`);
      this.errors.push(String(error));
    });
  }

  async newTab() {
    const page = await this.context.newPage();
    this.watch(page);
    return page;
  }

  /** SIGKILL to the whole browser: nothing gets to say goodbye. */
  async kill() {
    const closed = new Promise((done) => this.context.once('close', done));
    this.signal('SIGKILL');
    await closed;
  }

  /** SIGSTOP to the whole browser: it is there and does nothing. */
  freeze() {
    this.signal('SIGSTOP');
  }

  /** It goes on. */
  thaw() {
    this.signal('SIGCONT');
  }

  /** SIGKILL to the browser's GPU process: every tab loses its device, and the browser starts the process again. Chromium
   * forgives this a few times only. */
  killGpu() {
    this.signal('SIGKILL', '--type=gpu-process');
  }

  /** A signal to all processes of this browser, or to those of one kind. */
  signal(name, kind = '') {
    // The profile's folder is in the command line of every process of this browser and of no other.
    const pids = execFileSync('pgrep', ['-f', '--', `${kind}.*${this.profile}`], { encoding: 'utf8' }).trim().split('\n');
    for (const pid of pids) {
      try {
        process.kill(Number(pid), name);
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;
      }
    }
  }

  /** Closes the browser and opens a new one on the same profile: a second visit. */
  async restart() {
    await this.context.close();
    await this.launch();
  }

  async stop() {
    await this.context.close().catch(() => {});
    await this.forget();
  }

  async forget() {
    await rm(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
