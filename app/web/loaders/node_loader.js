// Starts the node worker. The build in this file's own address (?v=…) goes on to what it loads: no stale mixture from a cache.
if (navigator.userAgent.includes("Gecko/") && self.GPUQueue) importScripts("./poll_kicks.js" + self.location.search);
importScripts("./node.js" + self.location.search);
// A program that cannot be loaded is an error of this worker, which the page hears of.
wasm_bindgen({ module_or_path: "./node_bg.wasm" + self.location.search }).catch((error) => setTimeout(() => { throw error; }));
