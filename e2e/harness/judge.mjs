// The judge's page: the engine alone in a browser, held against llama.cpp's answers.
import { execFileSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
// Another test file may be building it, too.
const out = join(root, `e2e/out/judge-${process.pid}`);
const types = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.html': 'text/html' };
const page = `<!doctype html><title>Judge</title><script type="module">
import init from '/potluck-judge.js';
await init();
document.body.textContent = 'Ready';
</script>`;

/** Builds the judge for the browser, together with the page: then both have the same dependencies with the same features, which
 * are compiled once. */
export function build() {
  const target = 'wasm32-unknown-unknown';
  const quiet = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] };
  const crates = ['-p', 'potluck-web', '-p', 'potluck-judge'];
  execFileSync('cargo', ['build', '--quiet', '--profile', 'web', '--target', target, ...crates, '--bins'], quiet);
  const folder = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
  const program = join(folder, target, 'web/potluck-judge.wasm');
  execFileSync('cargo', ['run', '--quiet', '--package', 'potluck-bundle', '--', program, out], quiet);
}

/** Serves the judge's page. */
export async function serve() {
  const server = createServer(async (request, response) => {
    try {
      const body = request.url === '/' ? page : await readFile(join(out, request.url));
      response.writeHead(200, { 'content-type': types[extname(request.url)] ?? 'text/html' }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const stop = async () => {
    server.close();
    await rm(out, { recursive: true, force: true });
  };
  return { url: `http://localhost:${server.address().port}/`, stop };
}
