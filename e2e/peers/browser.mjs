// A fresh Chromium for each run, and how much memory it takes.
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { launch } from './devtools.mjs';
import { median } from './report.mjs';

const run = promisify(execFile);

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

/** Opens a browser with an empty profile, runs `work` with its page, and removes everything again. */
export async function inFreshBrowser({ executablePath, args, memory, patience }, work) {
  const profile = await mkdtemp(join(tmpdir(), 'potluck-peer-'));
  const sampler = memory ? new Memory(profile, await deviceMemory(0)) : null;
  const page = await launch({ executablePath, args: ['--window-size=1280,800', ...args], profile }).catch(async (error) => {
    await sampler?.stop();
    throw error;
  });
  try {
    const { answering, ...result } = await within(patience, work(page));
    return { ...result, browser: page.version, ...(await sampler?.stop(answering)) };
  } finally {
    await sampler?.stop();
    await page.close();
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
  /** `others` is the GPU memory in use without the browser. */
  constructor(profile, others) {
    this.profile = profile;
    this.others = others;
    this.samples = [];
    this.running = true;
    this.done = this.sample();
  }

  async sample() {
    while (this.running) {
      const measured = this.processes().then((all) => Promise.all(all.map(async ({ pid, kind }) => [kind, await pss(pid)])));
      const [device, sizes] = await Promise.all([deviceMemory(this.others), measured]);
      const processes = sizes.filter(([, size]) => size > 0).sort(([, one], [, other]) => other - one);
      this.samples.push({ at: Date.now(), pss: processes.reduce((sum, [, size]) => sum + size, 0), processes, device });
      await new Promise((next) => setTimeout(next, 100));
    }
  }

  /**
   * The browser's processes and what each is for. The profile's folder is in the command line of the browser; its children are found
   * by their parents.
   */
  async processes() {
    const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const read = async (pid) => {
      const [command, status] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
        readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''),
      ]);
      const kind = /--type=([\w-]+)/.exec(command)?.[1] ?? 'browser';
      return { pid, kind, parent: status.slice(status.lastIndexOf(')') + 2).split(' ')[1], ours: command.includes(this.profile) };
    };
    const processes = await Promise.all(all.map(read));
    const found = new Set(processes.filter((one) => one.ours).map((one) => one.pid));
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const one of processes) if (found.has(one.parent)) found.add(one.pid);
    }
    return processes.filter(({ pid }) => found.has(pid));
  }

  /** Peaks of the whole run, and growth from the first fifth of the answers to the last one: `answering` is from when to when. */
  async stop(answering) {
    if (!this.running) return {};
    this.running = false;
    await this.done;
    // A browser that ended just before may still have been counted.
    const others = Math.min(this.others, ...this.samples.map((sample) => sample.device));
    for (const sample of this.samples) sample.device -= others;
    const peak = (size) => Math.max(0, ...this.samples.map(size));
    const whole = (sample) => sample.pss + sample.device;
    const largest = this.samples.reduce((most, sample) => (most && whole(most) >= whole(sample) ? most : sample), undefined);
    const [from, to] = answering ?? [0, 0];
    const part = (first, last) => {
      const at = (share) => from + share * (to - from);
      return median(this.samples.filter((sample) => sample.at >= at(first) && sample.at <= at(last)).map(whole));
    };
    const [before, after] = [part(0, 0.2), part(0.8, 1)];
    return {
      peakBytes: peak((sample) => sample.pss),
      peakDeviceBytes: peak((sample) => sample.device),
      peakTotalBytes: peak(whole),
      peakProcesses: largest?.processes,
      peakAt: largest && (largest.at - this.samples[0].at) / 1000,
      growthBytes: before === null || after === null ? undefined : after - before,
      samples: this.samples,
    };
  }
}

async function pss(pid) {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return 1024 * Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
}

/** Bytes in use on the first NVIDIA GPU, by whomever: not every driver lists them by process. `instead` where nothing is told. */
async function deviceMemory(instead) {
  const query = ['--id=0', '--query-gpu=memory.used', '--format=csv,noheader,nounits'];
  const { stdout } = await run('nvidia-smi', query, { timeout: 5000 }).catch(() => ({ stdout: '' }));
  const mib = Number.parseInt(stdout, 10);
  return Number.isFinite(mib) ? mib * 2 ** 20 : instead;
}
