// What a message takes from the worker of one tab to that of another tab of one browser: through the relay, by broadcast, and on
// a channel to which the page's shared worker introduced both, its buffer copied or given away.
//   node e2e/bench/ways.mjs [--count 1500] [--bytes 8192] [--rounds 2]
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '1500' }, bytes: { type: 'string', default: '8192' }, rounds: { type: 'string', default: '2' } },
});
const ways = ['relay', 'broadcast', 'channel, copied', 'channel, given away'];

const relay = await Relay.start({ models: [] });
const device = await Device.start('ways', { gpu: false });
try {
  const opened = await fetch(`${relay.url}/rooms`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ title: 'ways', visible: false }),
  });
  const { id } = await opened.json();
  const tabs = [device.page, await device.newTab()];
  for (const tab of tabs) {
    await tab.goto(`${relay.url}/bench`);
    await tab.evaluate(start, [`(${work})()`, `${relay.url.replace('http', 'ws')}/rooms/${id}`]);
  }
  for (let round = 1; round <= Number(values.rounds); round++)
    for (const idle of [0, 3])
      for (const way of ways) {
        const asked = { way, idle, count: Number(values.count), bytes: Number(values.bytes) };
        const millis = await tabs[0].evaluate((asked) => window.measure(asked), asked);
        console.log(`${idle} ms of pause, ${way}: ${millis.map((one) => one.toFixed(2)).join(' / ')} ms one way (10%, median, 95%), load ${loadavg()[0].toFixed(1)}`);
      }
} finally {
  await device.stop();
  await relay.stop();
}

/** Runs in a tab: a worker, introduced by the page's shared worker as a node is. */
async function start([code, url]) {
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  const { port } = new SharedWorker('/same_browser.js?v=ways');
  const heard = () => new Promise((done) => (worker.onmessage = ({ data }) => done(data)));
  window.measure = (asked) => {
    worker.postMessage(asked);
    return heard();
  };
  worker.postMessage({ url, port }, [port]);
  await heard();
}

/** Runs in a worker: sends back what is not its own question, and measures when asked. */
function work() {
  let channel;
  let peer;
  let asking = null;
  const send = {
    relay: (buffer) => {
      new DataView(buffer).setUint32(0, peer);
      socket.send(buffer);
    },
    broadcast: (buffer) => everyone.postMessage(buffer),
    'channel, copied': (buffer) => channel.postMessage({ way: 'channel, copied', buffer }),
    'channel, given away': (buffer) => channel.postMessage({ way: 'channel, given away', buffer }, [buffer]),
  };
  let socket;
  const came = (way, buffer) => (asking ? asking(buffer) : send[way](buffer));
  const everyone = new BroadcastChannel('ways');
  everyone.onmessage = ({ data }) => came('broadcast', data);

  async function open({ url, port }) {
    port.onmessage = ({ ports }) => {
      [channel] = ports;
      channel.onmessage = ({ data }) => came(data.way, data.buffer);
    };
    socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    const route = await new Promise((done) => {
      socket.onmessage = ({ data }) => {
        if (typeof data !== 'string') return came('relay', data);
        const { type, route, members } = JSON.parse(data);
        if (type === 'join') peer = route;
        if (type !== 'welcome') return;
        [peer] = members;
        done(route);
      };
    });
    port.postMessage({ room: 'ways', route });
  }

  async function measure({ way, idle, count, bytes }) {
    const once = () => {
      const answered = new Promise((done) => (asking = done));
      send[way](new ArrayBuffer(bytes));
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
