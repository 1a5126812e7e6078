// Reverse proxies with the configurations of relay/deploy. Each shows a relay in a folder, over TLS: https://localhost:PORT/potluck.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { freePort } from './relay.mjs';

const deploy = resolve(import.meta.dirname, '../../relay/deploy');

const kinds = {
  nginx: {
    config: 'nginx.conf',
    args: (file, folder) => ['-c', file, '-p', folder, '-e', 'stderr'],
    changes: ({ port, upstream, certificate, key, folder }) => [
      [/^(.*)$/s, `daemon off; master_process off; pid nginx.pid; events {} http { include /etc/nginx/mime.types;
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ')}\n$1}`],
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      ['server_name potluck.example', 'server_name localhost'],
      ['/etc/ssl/potluck/fullchain.pem', certificate],
      ['/etc/ssl/potluck/privkey.pem', key],
      // What the file says about a folder.
      ['location / {', 'location /potluck/ {'],
      ['http://127.0.0.1:8787;', `http://${upstream}/;`],
    ],
  },
  caddy: {
    config: 'Caddyfile',
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    changes: ({ port, upstream, certificate, key }) => [
      ['potluck.example {', `{\n\tadmin off\n\tauto_https disable_redirects\n}\n\nhttps://localhost:${port} {\n\ttls ${certificate} ${key}`],
      ['127.0.0.1:8787', upstream],
      // What the file says about a folder.
      ['\thandle {', '\tredir /potluck /potluck/\n\thandle_path /potluck/* {'],
    ],
  },
  haproxy: {
    config: 'haproxy.cfg',
    args: (file) => ['-db', '-f', file],
    changes: ({ port, upstream, both }) => [
      [/bind :80\n/, '\n'],
      ['bind :443 ssl crt /etc/haproxy/potluck.pem', `bind 127.0.0.1:${port} ssl crt ${both}`],
      ['maxconn 20000', 'maxconn 400'],
      [/10\.0\.0\.\d:8787/g, upstream],
      // What the file says about a folder.
      [/#http-request/g, 'http-request'],
    ],
  },
};

/** The proxies that this test knows. */
export const PROXIES = Object.keys(kinds);

/** Where a program is. */
function find(name) {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Why a test with this proxy is skipped; false if it is there. */
export function missing(kind) {
  const name = [kind, 'openssl'].find((name) => !find(name));
  return name ? `${name} is not installed` : false;
}

/** Flags for a browser that does not mind a certificate which nobody knows. */
export const TRUSTING = { args: ['--ignore-certificate-errors'] };

export class Proxy {
  /** Starts a proxy of this kind in front of a relay. */
  static async start(kind, relay) {
    const proxy = new Proxy();
    proxy.folder = await mkdtemp(join(tmpdir(), `potluck-${kind}-`));
    const [port, upstream] = [await freePort(), `127.0.0.1:${new URL(relay.url).port}`];
    const [certificate, key, both] = ['certificate', 'key', 'both'].map((name) => join(proxy.folder, `${name}.pem`));
    execFileSync('openssl', [
      'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
      '-addext', 'subjectAltName=DNS:localhost', '-out', certificate, '-keyout', key,
    ], { stdio: 'ignore' });
    await writeFile(both, (await readFile(certificate, 'utf8')) + (await readFile(key, 'utf8')));
    const { config, args, changes } = kinds[kind];
    let text = await readFile(join(deploy, config), 'utf8');
    for (const [from, to] of changes({ port, upstream, certificate, key, both, folder: proxy.folder })) {
      const changed = text.replace(from, to);
      if (changed === text) throw new Error(`relay/deploy/${config} has no ${from}`);
      text = changed;
    }
    const file = join(proxy.folder, config);
    await writeFile(file, text);
    const environment = { ...process.env, XDG_DATA_HOME: proxy.folder, XDG_CONFIG_HOME: proxy.folder };
    proxy.process = spawn(find(kind), args(file, proxy.folder), { stdio: ['ignore', 'ignore', 'pipe'], env: environment });
    proxy.url = `https://localhost:${port}/potluck`;
    await proxy.listens();
    return proxy;
  }

  /** Waits until its port is open. */
  async listens() {
    let said = '';
    this.process.stderr.on('data', (data) => (said += data));
    let ended = null;
    this.process.once('exit', (code) => (ended = code));
    for (;;) {
      if (ended !== null) throw new Error(`the proxy stopped with ${ended}: ${said}`);
      const { port } = new URL(this.url);
      const isOpen = await new Promise((done) => {
        const socket = connect(port, '127.0.0.1', () => done(true));
        socket.once('error', () => done(false)).once('close', () => socket.destroy()).end();
      });
      if (isOpen) return;
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  async stop() {
    const gone = new Promise((done) => this.process.once('exit', done));
    if (this.process.exitCode === null && this.process.kill('SIGKILL')) await gone;
    await rm(this.folder, { recursive: true, force: true });
  }
}
