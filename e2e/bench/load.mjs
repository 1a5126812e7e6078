// How fast a stored model loads, compared with reading and uploading alone: the bench's load rates on the first visit and on later
// ones of the same profile, with the browser restarted in between.
//   node e2e/bench/load.mjs --models DIR --rounds 3
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { median } from './hops.mjs';
import { record } from './results.mjs';
import { options } from './room.mjs';

const { models, rounds, out } = options();
const relay = await Relay.start({ models });
const device = await Device.start('load');
const visits = [];
try {
  for (;;) {
    const { models } = await (await fetch(`${relay.url}/models`)).json();
    if (models.length > 0 && models.every((model) => model.state.phase === 'ready')) break;
    await new Promise((done) => setTimeout(done, 200));
  }
  for (let visit = 1; visit <= rounds; visit++) {
    if (visit > 1) await device.restart();
    await device.page.goto(`${relay.url}/bench`);
    const { load } = await device.page.evaluate(async () => {
      const { models } = await (await fetch('/models')).json();
      const choice = { model: models[0].name, workloads: [[4, 2]], repeats: 1, kernels: false };
      while (!window.potluck) await new Promise((done) => setTimeout(done, 50));
      return window.potluck.bench(choice);
    });
    visits.push({ visit, ...load, average: loadavg()[0] });
    const { rates } = load;
    const shown = rates && `${(100 * rates.share).toFixed(0)}% (${[rates.load, rates.read, rates.upload].map((rate) => (rate / 1e9).toFixed(2)).join(', ')} GB/s loading, reading, uploading)`;
    console.log(`visit ${visit}: ${shown ?? 'no rates'}, load ${loadavg()[0].toFixed(1)}`);
    if (out) await writeFile(out, JSON.stringify(visits, null, 1));
  }
} finally {
  await device.stop();
  await relay.stop();
}

const rates = visits.map((visit) => visit.rates).filter(Boolean);
await record('load', [
  { label: "loaded from the browser's storage (median of all visits)", value: median(rates.map((rate) => rate.load)) / 1e9, unit: 'GB/s' },
  { label: 'this rate as a share of the limit (the slower of reading and uploading)', value: 100 * median(rates.map((rate) => rate.share)), unit: '%', target: '70%' },
]);
