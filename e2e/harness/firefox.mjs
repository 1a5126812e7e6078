// Firefox as distributions ship it, with WebGPU on Mesa's software adapter. Playwright drives it by WebDriver BiDi.
// There `fill` sets a field by a script, so that no `change` follows: type where a test needs one. CDP and `killGpu` are Chromium's.
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { firefox } from 'playwright-core';

const named = process.env.POTLUCK_FIREFOX;

/** What Firefox is called on a search path, and where it is on systems that do not put it there. */
const names = ['firefox-esr', 'firefox'];
const places = ['/Applications/Firefox.app/Contents/MacOS/firefox', 'C:\\Program Files\\Mozilla Firefox\\firefox.exe'];

// Firefox has WebGPU on Linux, but leaves it off. The README tells people to set the same two preferences.
const preferences = { 'dom.webgpu.enabled': true, 'gfx.webgpu.ignore-blocklist': true };

/** Opens Firefox on a profile. Fails with what to install. */
export async function launch(profile, { viewport = { width: 1280, height: 800 }, colorScheme = 'light' } = {}) {
  return firefox.launchPersistentContext(profile, {
    channel: 'moz-firefox',
    executablePath: find(),
    firefoxUserPrefs: preferences,
    env: { ...process.env, ...softwareAdapter() },
    viewport,
    colorScheme,
  });
}

function find() {
  const path = (process.env.PATH ?? '').split(delimiter);
  const found = named ?? [...path.flatMap((folder) => names.map((name) => join(folder, name))), ...places].find(existsSync);
  if (found === undefined || !existsSync(found)) {
    throw new Error(
      `this test needs Firefox${named ? `, and POTLUCK_FIREFOX names ${named}, which is not there` : ', and none is installed'}. ` +
        'Install it (on Debian: sudo apt-get install firefox-esr mesa-vulkan-drivers), or name one with POTLUCK_FIREFOX=/path/to/firefox',
    );
  }
  return found;
}

/** On Linux, Mesa's lavapipe, whatever GPU there is, so that every machine computes the same; for measuring, the driver that
 * `VK_DRIVER_FILES` names. */
function softwareAdapter() {
  const drivers = '/usr/share/vulkan/icd.d';
  if (process.platform !== 'linux' || process.env.VK_DRIVER_FILES) return {};
  const lavapipe = existsSync(drivers) ? readdirSync(drivers).find((name) => name.startsWith('lvp_icd')) : undefined;
  if (lavapipe === undefined) throw new Error('this test needs a Vulkan driver that runs on the CPU (on Debian: sudo apt-get install mesa-vulkan-drivers)');
  return { VK_DRIVER_FILES: join(drivers, lavapipe) };
}
