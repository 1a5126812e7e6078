// A room of real browsers for measuring: a host and contributors of one model.
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { ask, contribute, host, status, until } from '../harness/table.mjs';

/** The command line that all measurements share. */
export function options(more = {}) {
  const { values } = parseArgs({
    options: {
      models: { type: 'string' },
      title: { type: 'string', default: '' },
      devices: { type: 'string', default: '4' },
      rounds: { type: 'string', default: '5' },
      context: { type: 'string', default: '1024' },
      out: { type: 'string' },
      tabs: { type: 'boolean', default: false },
      relayed: { type: 'boolean', default: false },
      ...more,
    },
  });
  if (!values.models) throw new Error('Say where the model is: --models DIR, with --title TEXT of it on the page if there are several');
  return { ...values, devices: Number(values.devices), rounds: Number(values.rounds), context: Number(values.context) };
}

/**
 * Browsers with profiles of their own, or with `--tabs` tabs of one browser, which `--relayed` keeps from reaching each other
 * directly. The first one hosts; everyone takes part. `engines` names each one's engine, which is Chromium otherwise.
 */
export class Room {
  static async open({ models, title, context, tabs, relayed, engines = [] }) {
    const room = new Room();
    room.tabs = tabs;
    room.relay = await Relay.start({ models });
    room.engines = engines;
    room.devices = [await Device.start('host', { engine: engines[0] })];
    // Tabs of one browser find each other through a shared worker, or connect as devices do.
    if (relayed)
      await room.devices[0].context.addInitScript(() => {
        delete window.SharedWorker;
        delete window.RTCPeerConnection;
      });
    room.pages = [room.host];
    // Pages lend less by default than some models need, and the first device has to hold everything.
    const lends = Math.ceil(1.3 * (await room.ready())) + 1_000_000_000;
    room.link = await host(room.host, room.relay, { model: title || undefined, lends, share: 'Everyone takes part', context });
    await room.sharedBy(1);
    return room;
  }

  /** Waits until the relay has read the models' files; bytes of the largest. */
  async ready() {
    for (;;) {
      const { models } = await (await fetch(`${this.relay.url}/models`)).json();
      if (models.length > 0 && models.every((model) => model.state.phase === 'ready')) return Math.max(...models.map((model) => model.bytes));
      await new Promise((done) => setTimeout(done, 200));
    }
  }

  get host() {
    return this.devices[0].page;
  }

  async join() {
    const page = await this.another();
    this.pages.push(page);
    await contribute(page, this.link);
    await this.sharedBy(this.pages.length);
    return this.devices.at(-1);
  }

  /** A page of one more device: a browser of its own, or a tab of the host's, which shares its GPU process. */
  async another() {
    if (this.tabs) return this.devices[0].newTab();
    const engine = this.engines[this.devices.length];
    const device = await Device.start(`device ${this.devices.length + 1}`, { engine });
    this.devices.push(device);
    return device.page;
  }

  /** The latest events of each device. */
  traces() {
    return Promise.all(this.pages.map((page) => page.evaluate(() => window.potluck.trace())));
  }

  /** Waits until this many devices share the blocks. */
  async sharedBy(count) {
    const working = (plan) => new Set(plan.stages.map((stage) => stage.peer)).size;
    const shared = (now) => now.plan?.state === 'Up' && working(now.plan) === count;
    return until(this.host, shared, `${count} devices share the blocks`);
  }

  status() {
    return status(this.host);
  }

  ask(text, tokens) {
    return ask(this.host, text, { max_tokens: tokens, temperature: 0, raw: true });
  }

  async close() {
    for (const device of this.devices) await device.stop();
    await this.relay.stop();
  }
}
