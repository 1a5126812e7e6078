// Starts the node worker. The build in this file's own address (?v=…) goes on to what it loads: no stale mixture from a cache.
if (navigator.userAgent.includes("Gecko/") && self.GPUQueue) importScripts("./poll_kicks.js" + self.location.search);
importScripts("./node.js" + self.location.search);
// What holds answers to a form: loaded when one is first asked for, and at once, because the answer waits.
self.loadForms = () => {
  importScripts("./forms.js" + self.location.search);
  const request = new XMLHttpRequest();
  request.open("GET", "./forms_bg.wasm" + self.location.search, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error("the relay answered with status " + request.status);
  potluck_forms.initSync({ module: request.response });
  return potluck_forms;
};
// A program that cannot be loaded is an error of this worker, which the page hears of.
wasm_bindgen({ module_or_path: "./node_bg.wasm" + self.location.search }).catch((error) => setTimeout(() => { throw error; }));
