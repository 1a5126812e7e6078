// A relay process of the tests' own.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const binary = process.env.POTLUCK_RELAY ?? join(root, 'target/release/potluck-relay');

/** The folder of the built page. */
export const builtPage = process.env.POTLUCK_PAGE ?? join(root, 'dist');

export class Relay {
  /** Starts a relay on a free port, serving the built page, or the one in `page`, and the models in `models`; with `local: false` also
   * over TLS, and to other devices. `args` are further options. */
  static async start({ models, page = builtPage, port = 0, local = true, args = [] }) {
    const relay = new Relay();
    relay.local = local;
    relay.page = page;
    relay.models = models;
    relay.args = args;
    relay.port = port || (await freePort());
    relay.data = await mkdtemp(join(tmpdir(), 'potluck-relay-'));
    await relay.spawn();
    return relay;
  }

  async spawn() {
    const models = [this.models].flat().flatMap((folder) => ['--models', folder]);
    const args = [...(this.local ? ['--local'] : []), '--port', String(this.port), '--page', this.page, '--data', this.data, ...models, ...this.args];
    this.process = spawn(binary, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = new Promise((_, reject) => {
      this.process.once('exit', (code) => reject(new Error(`the relay stopped with ${code}`)));
      this.process.once('error', reject);
    });
    exited.catch(() => {});
    const up = new Promise((done) => {
      let text = '';
      this.process.stdout.on('data', (data) => {
        text += data;
        const found = /http:\/\/localhost:(\d+)/.exec(text);
        if (found) done(found[0]);
      });
    });
    this.url = await Promise.race([up, exited]);
  }

  /** SIGKILL: nobody is told. */
  async kill() {
    const gone = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGKILL');
    await gone;
  }

  /** A counter of the relay, summed over its labels. */
  async metric(name) {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const values = text
      .split('\n')
      .filter((line) => line.startsWith(name) && /[ {]/.test(line[name.length] ?? ''))
      .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
    if (values.length === 0) throw new Error(`the relay has no metric ${name}:\n${text}`);
    return values.reduce((sum, value) => sum + value, 0);
  }

  async stop() {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill();
    await rm(this.data, { recursive: true, force: true });
  }
}

export function freePort() {
  return new Promise((done, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
