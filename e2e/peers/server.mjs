// Serves the peers' packages and the models, with the headers that threads in WebAssembly need.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };

/** `folders` maps the first part of a path to a folder. */
export async function serve(folders) {
  const server = createServer(async (request, response) => {
    const isolation = {
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'same-origin',
      'accept-ranges': 'bytes',
    };
    try {
      const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
      const [, first, ...rest] = path.split('/');
      const inside = normalize(rest.join('/'));
      if (!(first in folders) || inside.startsWith('..')) throw new Error('nothing here');
      const file = join(folders[first], inside);
      const { size } = await stat(file);
      const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
      const start = range ? Number(range[1]) : 0;
      const end = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
      const headers = { ...isolation, 'content-type': types[extname(file)] ?? 'application/octet-stream', 'content-length': end - start + 1 };
      if (range) headers['content-range'] = `bytes ${start}-${end}/${size}`;
      response.writeHead(range ? 206 : 200, headers);
      if (request.method === 'HEAD') return response.end();
      createReadStream(file, { start, end }).on('error', () => response.destroy()).pipe(response);
    } catch {
      response.writeHead(404, isolation).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://localhost:${server.address().port}`, stop };
}
