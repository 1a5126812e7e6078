// Potluck: its own bench, on the page that the relay serves.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A relay that serves the page and the models. */
export async function start({ relay, page, models }) {
  const data = await mkdtemp(join(tmpdir(), 'potluck-peers-relay-'));
  const port = await freePort();
  const child = spawn(relay, ['--local', '--port', String(port), '--page', page, '--data', data, '--models', models], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await new Promise((done, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the relay stopped with ${code}`)));
    let text = '';
    child.stdout.on('data', (bytes) => {
      text += bytes;
      const found = /http:\/\/localhost:\d+/.exec(text);
      if (found) done(found[0]);
    });
  });
  const stop = async () => {
    child.removeAllListeners('exit');
    const gone = new Promise((done) => child.once('exit', done));
    child.kill();
    await gone;
    await rm(data, { recursive: true, force: true });
  };
  const ready = async (name) => {
    for (;;) {
      const { models: list } = await (await fetch(`${url}/models`)).json();
      const model = list.find((one) => one.name === name);
      if (model?.state.phase === 'ready') return;
      if (model?.state.phase === 'broken') throw new Error(`${name}: ${model.state.message}`);
      await new Promise((next) => setTimeout(next, 500));
    }
  };
  return { url, stop, ready };
}

/** One warm-up and so many answers that count, of each prompt. */
export function measure({ url }, { model, workloads, answers, kernels, arithmetic }) {
  return async (page) => {
    await page.goto(`${url}/bench`);
    while (!(await page.evaluate(() => Boolean(window.potluck?.bench)))) await page.waitForTimeout(100);
    const options = { model, workloads: workloads.map(({ prompt, answer }) => [prompt, answer]), repeats: answers, kernels, arithmetic };
    const report = await page.evaluate((given) => window.potluck.bench(given), options);
    const end = Date.now();
    const took = report.workloads.flatMap(({ runs }) => runs).reduce((sum, run) => sum + run.first_token + run.decode, 0);
    const f16 = report.device.features.some((name) => /shader.?f16/i.test(name)) ? 'with' : 'without';
    return {
      engine: `Potluck ${report.build}`,
      adapter: report.device.adapter,
      browser: report.device.browser,
      loadMs: report.load.millis,
      note: `keys and values in ${report.device.tuned.find(([name]) => name === 'keys and values')?.[1]}; ${f16} shader-f16`,
      report,
      // Kernels are timed after the answers, and their time is not told.
      ...(kernels ? {} : { answering: [end - took, end] }),
      results: report.workloads.map(({ prompt, answer, runs, prefill, decode, first_token }) => {
        const wrong = runs.find(({ tokens }) => tokens !== answer);
        if (wrong) throw new Error(`${wrong.tokens} tokens came instead of ${answer}`);
        return { prompt, answer, prefill, decode, firstMs: first_token };
      }),
    };
  };
}

function freePort() {
  return new Promise((done, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
