// Starts the storage worker. The build in this file's own address (?v=…) goes on to what it loads: no stale mixture from a cache.
importScripts("./storage.js" + self.location.search);
// A program that cannot be loaded is an error of this worker, which whoever started it hears of.
wasm_bindgen({ module_or_path: "./storage_bg.wasm" + self.location.search }).catch((error) => setTimeout(() => { throw error; }));
