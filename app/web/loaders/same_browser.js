// A shared worker that introduces the tabs of one browser to each other: each two nodes of one room get the ends of a channel
// (app/node/src/web/same_browser.rs). Ports travel through workers of this kind only, and one that is WebAssembly would miss the
// first connection while it compiles.
const nodes = new Map();

onconnect = ({ ports: [node] }) => {
  // `{ room, route }` of a node that is in a room, or null when it has left.
  node.onmessage = ({ data: here }) => {
    nodes.delete(node);
    if (!here) return;
    for (const [other, there] of nodes) {
      if (there.room !== here.room) continue;
      const { port1, port2 } = new MessageChannel();
      node.postMessage({ route: there.route }, [port1]);
      other.postMessage({ route: here.route }, [port2]);
    }
    nodes.set(node, here);
  };
  // A tab that closed or crashed says nothing; where browsers do not tell, nobody answers on its channels.
  node.onclose = () => nodes.delete(node);
};
