// Time from **Open the room** until the room can answer: on the first visit, and on later ones of the same profile, with the browser
// restarted in between.
//   node e2e/bench/ready.mjs --models public/models --rounds 3
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';

import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';
import { isUp, until } from '../harness/table.mjs';
import { median } from './hops.mjs';
import { record } from './results.mjs';
import { options } from './room.mjs';

const { models, rounds, out } = options();
const relay = await Relay.start({ models });
const device = await Device.start('ready');
const visits = [];
try {
  for (let visit = 1; visit <= rounds; visit++) {
    if (visit > 1) await device.restart();
    await device.page.goto(relay.url);
    // The page itself is not part of it.
    await until(device.page, (status) => status.device.adapter !== '', 'the GPU is open');
    await device.page.getByRole('button', { name: 'Host a model' }).click();
    const open = device.page.getByRole('dialog', { name: 'Host a model' }).getByRole('button', { name: 'Open the room' });
    const started = performance.now();
    await open.click();
    await until(device.page, isUp, 'the room is up');
    const millis = performance.now() - started;
    visits.push({ visit, millis, load: loadavg()[0] });
    console.log(`visit ${visit}: ${(millis / 1000).toFixed(1)} s, load ${loadavg()[0].toFixed(1)}`);
    if (out) await writeFile(out, JSON.stringify(visits, null, 1));
  }
} finally {
  await device.stop();
  await relay.stop();
}

const [first, ...later] = visits.map((visit) => visit.millis / 1000);
const figures = [{ label: 'from Open the room to ready, first visit', value: first, unit: 's' }];
if (later.length > 0) figures.push({ label: 'from Open the room to ready, later visits (median)', value: median(later), unit: 's', target: '5 s' });
await record('ready', figures);
