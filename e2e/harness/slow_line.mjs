// A slow line to a relay: whatever passes waits, in both directions.
import { connect, createServer } from 'node:net';

export class SlowLine {
  /** A line to a relay on which each part of a message takes `millis` milliseconds longer. */
  static async to(relay, millis) {
    const slow = new SlowLine();
    slow.relay = new URL(relay.url);
    slow.sockets = new Set();
    slow.server = createServer((near) => {
      const far = connect(Number(slow.relay.port), slow.relay.hostname);
      for (const [from, to] of [[near, far], [far, near]]) {
        slow.sockets.add(from);
        from.setNoDelay(true);
        const later = (act) => setTimeout(() => to.destroyed || act(), millis);
        from.on('data', (data) => later(() => to.write(data)));
        from.on('end', () => later(() => to.end()));
        from.on('error', () => to.destroy());
        from.on('close', () => slow.sockets.delete(from));
      }
    });
    await new Promise((done) => slow.server.listen(0, slow.relay.hostname === 'localhost' ? 'localhost' : '127.0.0.1', done));
    return slow;
  }

  /** The same link over this line. */
  through(link) {
    const url = new URL(link);
    url.port = String(this.server.address().port);
    return url.href;
  }

  async stop() {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((done) => this.server.close(done));
  }
}
