// Takes a picture of a page without opening a window: `node look.mjs http://localhost:8787 look.png [WIDTH] [dark]`.
import { Device } from './harness/browser.mjs';

const [url, path, width = '1280', colorScheme = 'light'] = process.argv.slice(2);
if (!url || !path) throw new Error('Usage: node look.mjs URL PICTURE.png [WIDTH] [dark]');
const device = await Device.start('look', { viewport: { width: Number(width), height: 800 }, colorScheme });
try {
  await device.page.goto(url);
  // What the page shows once its program runs.
  await device.page.getByRole('button').first().waitFor();
  await device.page.screenshot({ path, fullPage: true });
} finally {
  await device.stop();
}
if (device.errors.length > 0) console.error(device.errors.join('\n'));
