// Drives a browser through a pipe, just enough to open a page and run a function in it. Playwright has the browser record network
// traffic, which keeps up to 200 MB of response bodies in each page and worker and slows downloads: neither memory nor loading
// could be measured that way.
import { spawn } from 'node:child_process';

/** Starts a browser on a profile and returns its only page. */
export async function launch({ executablePath, args, profile }) {
  const flags = [...args, '--no-default-browser-check', '--password-store=basic', `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank'];
  const child = spawn(executablePath, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const pipe = new Pipe(child);
  try {
    let target;
    while (!target) {
      const { targetInfos } = await pipe.ask('Target.getTargets');
      target = targetInfos.find(({ type }) => type === 'page');
      if (!target) await pause(50);
    }
    const { sessionId } = await pipe.ask('Target.attachToTarget', { targetId: target.targetId, flatten: true });
    const { product } = await pipe.ask('Browser.getVersion');
    return new Page(pipe, sessionId, product.replace(/^.*\//, ''));
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

const pause = (millis) => new Promise((done) => setTimeout(done, millis));

class Page {
  constructor(pipe, session, version) {
    this.pipe = pipe;
    this.session = session;
    this.version = version;
  }

  async goto(url) {
    const { errorText } = await this.pipe.ask('Page.navigate', { url }, this.session);
    if (errorText) throw new Error(`${url}: ${errorText}`);
    while ((await this.evaluate(() => `${document.readyState} ${location.href}`)) !== `complete ${url}`) await pause(50);
  }

  /** What a function gives for an argument in the page; both are JSON. */
  async evaluate(work, argument) {
    const expression = `(${work})(${JSON.stringify(argument) ?? ''})`;
    const asked = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.pipe.ask('Runtime.evaluate', asked, this.session);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  waitForTimeout(millis) {
    return pause(millis);
  }

  async close() {
    await this.pipe.close();
  }
}

/** Messages end with a zero byte; answers have the number of what was asked. */
class Pipe {
  constructor(child) {
    this.child = child;
    this.waiting = new Map();
    this.next = 1;
    this.gone = new Promise((done) => {
      const end = (reason) => {
        this.ended = new Error(reason);
        for (const { reject } of this.waiting.values()) reject(this.ended);
        this.waiting.clear();
        done();
      };
      child.once('error', (error) => end(String(error)));
      child.once('exit', (code, signal) => end(`the browser ended (${code ?? signal})`));
    });
    const [, , , to, from] = child.stdio;
    this.to = to;
    to.on('error', () => {});
    let parts = [];
    from.on('data', (bytes) => {
      for (let end; (end = bytes.indexOf(0)) >= 0; bytes = bytes.subarray(end + 1)) {
        this.hear(JSON.parse(Buffer.concat([...parts, bytes.subarray(0, end)]).toString()));
        parts = [];
      }
      parts.push(bytes);
    });
  }

  hear({ id, result, error }) {
    const asked = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) asked?.reject(new Error(error.message));
    else asked?.resolve(result);
  }

  ask(method, params = {}, sessionId = undefined) {
    if (this.ended) return Promise.reject(this.ended);
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  async close() {
    const late = setTimeout(() => this.child.kill('SIGKILL'), 10_000);
    await this.ask('Browser.close').catch(() => {});
    await this.gone;
    clearTimeout(late);
  }
}
