// A film of three devices that answer together, for the README: `node film.mjs [OUT.webp]` after `cargo xtask build`. Needs Debian's
// ffmpeg. Time runs quicker than it did: three software adapters share one machine here.
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { Device } from './harness/browser.mjs';
import { Relay } from './harness/relay.mjs';
import { contribute, host, isUpOn, send, until } from './harness/table.mjs';

const root = resolve(import.meta.dirname, '..');
const out = resolve(process.argv[2] ?? join(root, 'docs/screenshots/film.webp'));
const WINDOW = { width: 960, height: 640 };
const MOST_BYTES = 300_000;
const PATIENCE = 600_000;
/** Seconds of the film, and pictures a second. */
const [LENGTH, RATE] = [10, 2];
// The page guesses a device's icon and name from these.
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36';
const ANDROID = 'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Mobile Safari/537.36';

/** Takes a picture whenever the page has changed. Returns what ends it, and gives the pictures with their times. */
async function record(device) {
  const client = await device.context.newCDPSession(device.page);
  const pictures = [];
  client.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
    pictures.push({ time: metadata.timestamp, data });
    client.send('Page.screencastFrameAck', { sessionId }).catch(() => {});
  });
  await client.send('Page.startScreencast', { format: 'png' });
  return async () => {
    await client.send('Page.stopScreencast');
    return pictures;
  };
}

/** The picture that is seen at each moment of the film. */
function atMoments(pictures) {
  const [begin, end] = [pictures[0].time, pictures.at(-1).time];
  return Array.from({ length: LENGTH * RATE }, (_, moment) => {
    const time = begin + ((end - begin) * moment) / (LENGTH * RATE - 1);
    return pictures.findLast((picture) => picture.time <= time + 1e-6);
  });
}

const relay = await Relay.start({ models: join(root, 'public/models') });
const devices = [];
const start = async (name, viewport, ...args) => {
  const device = await Device.start(name, { viewport, args });
  devices.push(device);
  return device;
};
const folder = await mkdtemp(join(tmpdir(), 'potluck-film-'));
try {
  const desktop = await start('desktop', WINDOW);
  const link = await host(desktop.page, relay);
  await until(desktop.page, isUpOn(1));
  const guests = [await start('laptop', WINDOW, `--user-agent=${MAC}`), await start('phone', { width: 390, height: 844 }, `--user-agent=${ANDROID}`)];
  const stop = await record(desktop);
  for (const [at, guest] of guests.entries()) {
    await contribute(guest.page, link);
    await until(desktop.page, isUpOn(at + 2));
  }
  await send(desktop.page, 'Tell me a story about a fox and the rain.');
  await desktop.page.getByText(/first token after/).first().waitFor({ timeout: PATIENCE });
  const pictures = atMoments(await stop());
  for (const [at, { data }] of pictures.entries()) await writeFile(join(folder, `${String(at).padStart(4, '0')}.png`), Buffer.from(data, 'base64'));
  // Few colours without loss: text stays sharp, and what does not change costs nothing.
  const colours = 'split[a][b];[a]palettegen=max_colors=24[p];[b][p]paletteuse=dither=none';
  execFileSync('ffmpeg', ['-y', '-loglevel', 'error', '-framerate', String(RATE), '-i', join(folder, '%04d.png'), '-vf', colours, '-c:v', 'libwebp_anim', '-lossless', '1', '-compression_level', '6', '-loop', '0', out]);
  const { size } = await stat(out);
  console.log(`${out}: ${pictures.length} pictures, ${Math.round(size / 1000)} kB`);
  if (size > MOST_BYTES) throw new Error(`the film has ${size} bytes, at most ${MOST_BYTES} are allowed`);
} finally {
  for (const device of devices) await device.stop();
  await relay.stop();
  await rm(folder, { recursive: true, force: true });
}
