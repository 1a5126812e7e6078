// A fresh Chromium for each run, and what it takes of the machine's memory.
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

// On a machine without network Playwright lies where PLAYWRIGHT says.
const from = process.env.PLAYWRIGHT ?? resolve(import.meta.dirname, '..');
const { chromium } = createRequire(join(from, 'package.json'))('playwright-core');

/** Flags of a software adapter, for machines without a GPU. */
export const SOFTWARE = [
  '--headless=new',
  '--no-sandbox',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const ours = [
  '--headless', '--disable-gpu', '--use-gl=swiftshader', '--use-angle=swiftshader', '--use-angle=swiftshader-webgl',
  '--enable-unsafe-swiftshader', '--hide-scrollbars', '--mute-audio', '--disable-field-trial-config',
];

/** Opens a browser with an empty profile, gives its page to `work`, and takes everything away again. */
export async function inFreshBrowser({ executablePath, args, memory, patience }, work) {
  const profile = await mkdtemp(join(tmpdir(), 'potluck-peer-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    args,
    headless: !args.includes('--ozone-platform=x11'),
    ignoreDefaultArgs: ours,
    viewport: { width: 1280, height: 800 },
  });
  const sampler = memory ? new Memory(profile) : null;
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(patience);
    const result = await within(patience, work(page));
    return { ...result, browser: context.browser()?.version() ?? result.browser, ...(await sampler?.stop()) };
  } finally {
    await sampler?.stop();
    await context.close().catch(() => {});
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

function within(patience, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result within ${patience / 1000} s`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Samples the proportional set size of all processes of a profile's browser, ten times a second, and the GPU's memory. */
class Memory {
  constructor(profile) {
    this.profile = profile;
    this.peak = 0;
    this.device = 0;
    this.running = true;
    this.done = this.sample();
  }

  async sample() {
    while (this.running) {
      const pids = await this.pids();
      const sizes = await Promise.all(pids.map(pss));
      this.peak = Math.max(this.peak, sizes.reduce((sum, size) => sum + size, 0));
      this.device = Math.max(this.device, deviceMemory(new Set(pids)));
      await new Promise((next) => setTimeout(next, 100));
    }
  }

  /** The profile's folder is in the command line of the browser; its children are found by their parents. */
  async pids() {
    const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const read = async (pid) => {
      const [command, status] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
        readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''),
      ]);
      return { pid, parent: status.slice(status.lastIndexOf(')') + 2).split(' ')[1], ours: command.includes(this.profile) };
    };
    const processes = await Promise.all(all.map(read));
    const found = new Set(processes.filter((one) => one.ours).map((one) => one.pid));
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const one of processes) if (found.has(one.parent)) found.add(one.pid);
    }
    return [...found];
  }

  async stop() {
    this.running = false;
    await this.done;
    return { peakBytes: this.peak, peakDeviceBytes: this.device };
  }
}

async function pss(pid) {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return 1024 * Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
}

let smi = true;

/** Memory of these processes on an NVIDIA GPU; 0 where there is none. */
function deviceMemory(pids) {
  if (!smi) return 0;
  try {
    const text = execFileSync('nvidia-smi', ['--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits'], { encoding: 'utf8' });
    const rows = text.trim().split('\n').map((line) => line.split(', '));
    return rows.filter(([pid]) => pids.has(pid)).reduce((sum, [, mib]) => sum + Number(mib) * 2 ** 20, 0);
  } catch {
    smi = false;
    return 0;
  }
}
