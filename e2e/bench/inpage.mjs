// Runs a function in a page of this machine's browser that has WebGPU, without a room.
import { Device } from '../harness/browser.mjs';
import { Relay } from '../harness/relay.mjs';

/** What a function gives for an argument in the page; both are JSON. */
export async function inPage(name, work, argument) {
  const relay = await Relay.start({ models: [] });
  const device = await Device.start(name);
  try {
    // Any page of a safe origin has WebGPU.
    await device.page.goto(`${relay.url}/bench`);
    return await device.page.evaluate(work, argument);
  } finally {
    await device.stop();
    await relay.stop();
  }
}
