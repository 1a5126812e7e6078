// What a message takes from a worker of one tab to a worker of another tab of the same browser: through the relay, by broadcast, and
// on a channel that the page's shared worker sets up, with its buffer copied or transferred.
//   node e2e/bench/paths.mjs [--count 1500] [--bytes 8192] [--rounds 2]
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { ROOM, signer } from './relay_entry.mjs';
import { record } from './results.mjs';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '1500' }, bytes: { type: 'string', default: '8192' }, rounds: { type: 'string', default: '2' } },
});
const paths = ['relay', 'broadcast', 'channel, copied', 'channel, transferred'];
const last = {};

const relay = await Relay.start({ models: [] });
const device = await Device.start('paths', { gpu: false });
try {
  const tabs = [device.page, await device.newTab()];
  for (const [number, tab] of tabs.entries()) {
    // No page of Potluck: that starts its own workers only.
    await tab.goto(`${relay.url}/models`);
    await tab.evaluate(start, [`(${work})(${signer})`, `${relay.url.replace('http', 'ws')}/rooms/${ROOM}`, number]);
  }
  for (let round = 1; round <= Number(values.rounds); round++)
    for (const idle of [0, 3])
      for (const path of paths) {
        const asked = { path, idle, count: Number(values.count), bytes: Number(values.bytes) };
        const millis = await tabs[0].evaluate((asked) => window.measure(asked), asked);
        last[`${path} ${idle}`] = millis[1];
        console.log(`${idle} ms of pause, ${path}: ${millis.map((one) => one.toFixed(2)).join(' / ')} ms one way (10%, median, 95%), load ${loadavg()[0].toFixed(1)}`);
      }
  const figure = (label, idle) => ({
    label: `${values.bytes} bytes from tab to tab, ${label}`,
    value: last[`channel, transferred ${idle}`],
    unit: 'ms',
    peer: `through the relay: ${last[`relay ${idle}`].toFixed(2)} ms`,
  });
  await record('tab-messages', [figure('one way', 0), figure('after a pause of 3 ms', 3)]);
} finally {
  await device.stop();
  await relay.stop();
}

/** Runs in a tab: starts a worker that the page's shared worker connects to others, as it does with nodes. */
async function start([code, url, number]) {
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  const { port } = new SharedWorker('/same_browser.js?v=ways');
  const heard = () => new Promise((done) => (worker.onmessage = ({ data }) => done(data)));
  window.measure = (asked) => {
    worker.postMessage(asked);
    return heard();
  };
  worker.postMessage({ url, port, number }, [port]);
  await heard();
}

/** Runs in a worker: echoes messages, and measures when asked. */
function work(signer) {
  let channel;
  let peer;
  let asking = null;
  const send = {
    relay: (buffer) => {
      new DataView(buffer).setUint32(0, peer);
      socket.send(buffer);
    },
    broadcast: (buffer) => everyone.postMessage(buffer),
    'channel, copied': (buffer) => channel.postMessage({ path: 'channel, copied', buffer }),
    'channel, transferred': (buffer) => channel.postMessage({ path: 'channel, transferred', buffer }, [buffer]),
  };
  let socket;
  const came = (path, buffer) => (asking ? asking(buffer) : send[path](buffer));
  const everyone = new BroadcastChannel('paths');
  everyone.onmessage = ({ data }) => came('broadcast', data);

  async function open({ url, port, number }) {
    port.onmessage = ({ ports }) => {
      [channel] = ports;
      channel.onmessage = ({ data }) => came(data.path, data.buffer);
    };
    const owner = await signer(7);
    socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    const route = await new Promise((done) => {
      socket.onmessage = ({ data }) => {
        if (typeof data !== 'string') return came('relay', data);
        const { type, nonce, route, members } = JSON.parse(data);
        // The first tab owns the room, the second one has its join key.
        if (type === 'challenge') owner.enter(nonce, url.split('/').pop(), number, new URL(url).host).then((entry) => socket.send(entry));
        if (type === 'join') peer = route;
        if (type !== 'welcome') return;
        [peer] = members;
        done(route);
      };
    });
    port.postMessage({ room: 'paths', route });
  }

  async function measure({ path, idle, count, bytes }) {
    const once = () => {
      const answered = new Promise((done) => (asking = done));
      send[path](new ArrayBuffer(bytes));
      return answered;
    };
    for (let i = 0; i < 50; i++) await once();
    const times = [];
    while (times.length < count) {
      if (idle) await new Promise((done) => setTimeout(done, idle));
      const started = performance.now();
      await once();
      times.push((performance.now() - started) / 2);
    }
    asking = null;
    times.sort((left, right) => left - right);
    return [0.1, 0.5, 0.95].map((share) => times[Math.floor(share * (count - 1))]);
  }

  onmessage = async ({ data }) => postMessage(data.url ? ((await open(data)), null) : await measure(data));
}
