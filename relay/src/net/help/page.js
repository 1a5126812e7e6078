const agent = navigator.userAgent;
const isIPad = /Macintosh/.test(agent) && navigator.maxTouchPoints > 1;
const system = /iPhone|iPad|iPod/.test(agent) || isIPad ? "ios" : /Android/.test(agent) ? "android" : /Windows/.test(agent) ? "windows"
  : /Macintosh/.test(agent) ? "macos" : "linux";
document.querySelector(`[data-system=${system}]`).open = true;
// A socket is what a device refuses that does not trust the relay, and what the page needs.
const socket = new WebSocket(`wss://${location.host}/rooms/-`);
socket.onopen = () => {
  document.getElementById("trusted").hidden = false;
  socket.close();
  const open = document.getElementById("open");
  if (location.protocol === "http:" && open.protocol === "https:") {
    location.replace(open.href);
  }
};
