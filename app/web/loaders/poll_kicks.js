// Poll kicks for Firefox, which looks for finished GPU work only every 100 milliseconds, but also whenever a submit arrives: while
// anything is awaited, empty submits make it look earlier. Chromium looks every two milliseconds; there short work gets
// kicks (app/engine/src/runtime/poll_kick.rs).
{
  // For so many milliseconds, small steps of a fast GPU are looked for in every turn; then ever less often, so that whatever takes
  // long is found late by an eighth of its time and costs the processor little.
  const EVERY_TURN = 5;
  const APART = 0.5;
  const EIGHTH = 1 / 8;
  // What comes after a long wait is not to be found late by more than the browser would take.
  const LONGEST = 100;

  const submit = GPUQueue.prototype.submit;
  const { port1, port2 } = new MessageChannel();
  // The queue of what is awaited: a node has one device, and nothing is awaited before it has submitted something.
  let queue = null;
  let awaited = 0;
  let since = 0;
  let kicks = false;

  const turn = () =>
    new Promise((done) => {
      port1.onmessage = done;
      port2.postMessage(null);
    });
  const sleep = (millis) => new Promise((done) => setTimeout(done, millis));

  async function kick() {
    kicks = true;
    for (let last = since; awaited > 0; ) {
      const waited = performance.now() - since;
      await (waited < EVERY_TURN ? turn() : sleep(Math.min(waited * EIGHTH, LONGEST)));
      const now = performance.now();
      if (awaited === 0 || now - last < APART) continue;
      last = now;
      submit.call(queue, []);
    }
    kicks = false;
  }

  function changes(by) {
    awaited += by;
    since = performance.now();
    if (awaited > 0 && queue && !kicks) kick();
  }

  GPUQueue.prototype.submit = function (commands) {
    queue = this;
    return submit.call(this, commands);
  };
  for (const [kind, name] of [[GPUBuffer, "mapAsync"], [GPUQueue, "onSubmittedWorkDone"]]) {
    const begin = kind.prototype[name];
    kind.prototype[name] = function (...how) {
      const awaits = begin.apply(this, how);
      changes(1);
      const ends = () => changes(-1);
      awaits.then(ends, ends);
      return awaits;
    };
  }
}
