// A room of one case: opened, waited for until nothing changes any more, asked, and closed whatever happens.
import { Device } from '../../harness/browser.mjs';
import { ask, contribute, host, isUp, status } from '../../harness/table.mjs';
import { mark, marked } from './marks.mjs';

const SHARES = { alone: 'Fastest', demand: 'Fastest', spread: 'Spread the experts', layers: 'Everyone takes part' };
/** A room is settled when its plan and the places of its experts stay as they are for so many milliseconds. */
const SETTLED = 3_000;
/** With fewer devices at work than there are, if nothing changes for this long. */
const RESIGNED = 20_000;
/** A browser that does not close in this time is killed. */
const CLOSING = 8_000;

const pause = (millis) => new Promise((done) => setTimeout(done, millis));

/** Devices that hold experts for others, without those that hold none. */
export const holding = ({ plan }) => (plan?.experts?.holders ?? []).filter(({ experts }) => experts > 0);
const working = ({ plan }) => new Set((plan?.stages ?? []).map(({ peer }) => peer)).size;

export class MeasuredRoom {
  devices = [];
  pages = [];

  /**
   * Opens what the case says, on a relay that serves its file as its only one; `choice` is more of what the host's dialog asks. `lends` may
   * be a list, one for each of the others.
   */
  static async open(room, relay, { kind, host: hosts, others = 0, lends, tabs = false }, choice) {
    const first = await room.browser('host');
    room.link = await host(first, relay, { lends: hosts, share: SHARES[kind], ...choice });
    // Only the newest tab of a browser is in front, where it can be clicked.
    if (tabs) for (let count = 0; count < others; count += 1) await room.join(relay, { lends, tabs });
    else await Promise.all(Array.from({ length: others }, (_, index) => room.join(relay, { lends, index })));
    return room.settle(kind, others);
  }

  /** One more device contributes; `index` counts the others. */
  async join(relay, { lends, tabs = false, index = this.pages.length - 1 }) {
    const page = tabs ? await this.tab() : await this.browser(`device ${index + 2}`);
    await lendByDefault(page, relay, Array.isArray(lends) ? lends[index] : lends);
    await contribute(page, this.link);
  }

  async browser(name) {
    const device = await Device.start(name);
    this.devices.push(device);
    this.pages.push(device.page);
    return device.page;
  }

  async tab() {
    const page = await this.devices[0].newTab();
    this.pages.push(page);
    return page;
  }

  get host() {
    return this.pages[0];
  }

  /** Waits until everybody has a part and nothing changes; gives the host's status. */
  async settle(kind, others) {
    let [before, since] = ['', Date.now()];
    for (;;) {
      const now = await status(this.host);
      const held = holding(now);
      const seen = JSON.stringify([now.plan?.epoch, now.plan?.state, held.map(({ peer, experts, ordered }) => [peer, experts, ordered])]);
      if (seen !== before) [before, since] = [seen, Date.now()];
      const calm = Date.now() - since;
      const ready = isUp(now) && held.every(({ ordered }) => ordered === 0) && !now.loading;
      const complete = { alone: true, demand: now.on_demand !== null, spread: held.length >= others, layers: working(now) > others }[kind];
      if (ready && calm > (complete ? SETTLED : RESIGNED)) return now;
      if (now.plan?.waiting && calm > RESIGNED) throw new Error(now.plan.waiting.sentence);
      await pause(100);
    }
  }

  status() {
    return status(this.host);
  }

  ask(text, tokens, temperature = 0) {
    return ask(this.host, text, { max_tokens: tokens, temperature, seed: 15, raw: true });
  }

  /** Asks while all tabs mark what they do; gives the answer, the host's record and those of the others. */
  async askMarked(text, tokens, temperature) {
    await Promise.all(this.pages.map(mark));
    const answer = await this.ask(text, tokens, temperature);
    const records = await Promise.all(this.pages.map(async (page) => {
      const [marks, trace] = await Promise.all([marked(page), page.evaluate(() => window.potluck.trace())]);
      return { ...marks, trace };
    }));
    const [host, ...holders] = records;
    return { answer, host, holders };
  }

  /** Console errors of all devices. */
  errors() {
    return this.devices.flatMap(({ name, errors }) => errors.map((error) => `${name}: ${error}`));
  }

  async close() {
    await Promise.all(this.devices.map(async (device) => {
      const closed = await Promise.race([device.stop().then(() => true), pause(CLOSING)]);
      if (closed) return;
      try {
        device.signal('SIGKILL');
        await device.forget();
      } catch (error) {
        console.log(`   ${device.name} stays open: ${error.message.split('\n')[0]}`);
      }
    }));
  }
}

/** What a page lends when it contributes, kept as its settings keep it: a loan that is changed later would load everything twice. */
async function lendByDefault(page, relay, bytes) {
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).waitFor();
  await page.evaluate(
    (bytes) =>
      new Promise((done, failed) => {
        const opening = indexedDB.open('potluck-page');
        opening.onerror = () => failed(opening.error);
        opening.onsuccess = () => {
          const transaction = opening.result.transaction('page', 'readwrite');
          transaction.objectStore('page').put(JSON.stringify({ lend: bytes }), 'settings');
          transaction.oncomplete = () => {
            opening.result.close();
            done();
          };
          transaction.onerror = () => failed(transaction.error);
        };
      }),
    bytes,
  );
}
