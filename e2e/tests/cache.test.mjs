// The cache in a browser: one file a block and a journal. What a tab that died left half written, what lacks bytes and what an
// earlier version kept is fetched again, once, and no answer changes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { ask, host, isUp, until } from '../harness/table.mjs';

const PROMPT = { max_tokens: 8, temperature: 0, raw: true };
const TEXT = 'Once upon a time there was a table';

let relay;
let device;
let page;
let calm;

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  device = await Device.start('host');
  page = device.page;
  await host(page, relay, { model: 'tiny' });
  await until(page, isUp);
  calm = (await ask(page, TEXT, PROMPT)).tokens;
});

after(async () => {
  await device?.stop();
  await relay?.stop();
});

/** The files of the only model, and their lengths. */
const files = () =>
  page.evaluate(async () => {
    const weights = await (await navigator.storage.getDirectory()).getDirectoryHandle('weights');
    const found = {};
    for await (const [model, folder] of weights.entries()) {
      if (/^0+$/.test(model)) continue;
      for await (const [name, file] of folder.entries()) found[name] = (await file.getFile()).size;
    }
    return found;
  });

/** Changes files of the only model while no room is open: cut them, delete them (-1), or add bytes to them. */
async function change(changes) {
  const { href } = await page.evaluate(() => ({ href: location.href }));
  await page.goto(`${relay.url}/metrics`);
  await page.evaluate(async (changes) => {
    const weights = await (await navigator.storage.getDirectory()).getDirectoryHandle('weights');
    // The workers of the page before may not have ended yet, and have files open.
    const patiently = async (act) => {
      for (let attempt = 0; attempt < 100; attempt += 1) {
        try {
          return await act();
        } catch (error) {
          if (error.name !== 'NoModificationAllowedError') throw error;
          await new Promise((done) => setTimeout(done, 100));
        }
      }
      return act();
    };
    for await (const [model, folder] of weights.entries()) {
      if (/^0+$/.test(model)) continue;
      for (const [name, { len, more }] of Object.entries(changes)) {
        if (len === -1) {
          await patiently(() => folder.removeEntry(name));
          continue;
        }
        const file = await folder.getFileHandle(name, { create: true });
        const { size } = await file.getFile();
        const out = await patiently(() => file.createWritable({ keepExistingData: true }));
        if (len !== undefined) await out.truncate(len);
        if (more) await out.write({ type: 'write', position: len ?? size, data: new Uint8Array(more).fill(7) });
        await out.close();
      }
    }
  }, changes);
  const before = await relay.metric('potluck_relay_weight_bytes_total');
  await page.goto(href);
  await until(page, isUp);
  assert.deepEqual((await ask(page, TEXT, PROMPT)).tokens, calm, 'the answer is the same');
  return (await relay.metric('potluck_relay_weight_bytes_total')) - before;
}

test('a model lies in one file a block and one for both ends', async () => {
  const names = Object.keys(await files());
  const packs = names.filter((name) => /^(block-\d+|ends)-[0-9a-f]{8}$/.test(name));
  assert.equal(packs.length, 5, names.join());
  assert.ok(names.includes('units'), names.join());
  assert.deepEqual(names.filter((name) => /^(mixer-|dense-|embedding$|head$)/.test(name)), [], 'no unit has a file of its own');
  assert.equal(await change({}), 0, 'and is found there');
});

test('a record that was written in part does not count, and is written over', async () => {
  const { units } = await files();
  const served = await change({ units: { len: units - 10 } });
  const one = (await files()).units;
  assert.equal(one, units, 'the last unit was noted again');
  assert.ok(served > 0 && served < 2_000_000, `${served} bytes: one unit`);
  assert.equal(await change({}), 0);
});

test('bytes that no record tells of do not count', async () => {
  const before = await files();
  const pack = Object.keys(before).find((name) => name.startsWith('block-2-'));
  assert.equal(await change({ [pack]: { more: 1000 }, units: { more: 20 } }), 0, 'nothing is missing');
});

test('a file that is too short is noticed', async () => {
  const before = await files();
  const pack = Object.keys(before).find((name) => name.startsWith('block-1-'));
  const served = await change({ [pack]: { len: 100 } });
  assert.ok(served > before[pack] / 2, `${served} bytes of ${before[pack]}`);
  await change({});
  assert.equal(await change({}), 0, 'it is whole again');
  assert.equal((await files())[pack], before[pack], 'and no longer than it was');
});

test('files of an earlier version, and files without a journal, are deleted', async () => {
  const before = await files();
  const old = { 'mixer-0': { more: 5000 }, 'expert-0-1': { more: 5000 }, units: { len: -1 } };
  assert.ok((await change(old)) > 2_000_000, 'everything is fetched again');
  const now = await files();
  const packs = (names) => Object.keys(names).filter((name) => /^(block|ends)/.test(name));
  assert.equal(packs(now).length, 5);
  assert.deepEqual(packs(now).filter((name) => name in before), [], 'the old files are gone');
  assert.ok(!('mixer-0' in now) && !('expert-0-1' in now), Object.keys(now).join());
  assert.equal(await change({}), 0);
});
