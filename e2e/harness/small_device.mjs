// A small device's profile: a phone's window and touch, and a GPU that has WebGPU's default limits and no optional feature. Whoever
// asks for more gets no device, as on a phone, and the browser holds the device to its limits. The kernels are those of a software adapter; a GPU's kernels, whose
// barriers take a software adapter minutes, run in the engine's own tests.

const PHONE = {
  viewport: { width: 390, height: 844 },
  hasTouch: true,
  isMobile: true,
  userAgent: 'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Mobile Safari/537.36',
};

/** Options of a [`Device`] that is a phone. */
export const phone = { page: PHONE, prepare: (context) => makeSmall(context) };

/** Before anything runs in a page or in the worker that computes, its GPU becomes small. */
async function makeSmall(context) {
  await context.addInitScript(small);
  // To the browser, a script that a test gives to a worker comes from nowhere, and may not connect to this machine.
  await context.grantPermissions(['local-network-access']);
  await context.route('**/node_loader.js*', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `(${small})();\n${await response.text()}` });
  });
}

/** Runs in the page and in the worker. */
function small() {
  const { requestAdapter } = GPU.prototype;
  const { requestDevice } = GPUAdapter.prototype;

  /** What a device gets if it asks for nothing, by name. */
  async function defaults(gpu) {
    const device = await requestDevice.call(await requestAdapter.call(gpu));
    const limits = {};
    for (const name in device.limits) limits[name] = device.limits[name];
    device.destroy();
    return limits;
  }

  GPU.prototype.requestAdapter = async function (...how) {
    const [limits, adapter] = [await defaults(this), await requestAdapter.apply(this, how)];
    if (adapter) Object.defineProperties(adapter, { limits: { value: limits }, features: { value: new Set(['core-features-and-limits']) } });
    return adapter;
  };

  GPUAdapter.prototype.requestDevice = async function (descriptor = {}) {
    const { requiredFeatures = [], requiredLimits = {} } = descriptor;
    // For alignments, smaller is better.
    const isMore = ([name, value]) => value !== undefined && (name.startsWith('min') ? value < this.limits[name] : value > this.limits[name]);
    const missing = [...requiredFeatures].filter((feature) => !this.features.has(feature));
    const exceeded = Object.entries(requiredLimits).filter(isMore);
    if (missing.length + exceeded.length > 0) throw new TypeError(`a small device has no ${missing} ${exceeded}`);
    return requestDevice.call(this, descriptor);
  };
}
