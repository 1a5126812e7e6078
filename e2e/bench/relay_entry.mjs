// Enters a relay's room without the product: for measuring what the relay and a bare page take.

/** The room of the owner key that is made of 32 bytes of 7. */
export const ROOM = 'vdehbxlhujthptaoyaaug57jna';

/**
 * An Ed25519 key from a byte, which enters a room of a relay: number 0 as its owner, others with the join key, the same key. It runs where
 * its source is sent to, so everything it needs is in it.
 */
export async function signer(byte) {
  const CONTEXT = 'potluck 2026-11 entry nonce at relay';
  const prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
  const seed = new Uint8Array([...prefix, ...Array(32).fill(byte)]);
  const key = await crypto.subtle.importKey('pkcs8', seed, 'Ed25519', true, ['sign']);
  const text = (bytes) => new Uint8Array(bytes).toBase64({ alphabet: 'base64url', omitPadding: true });
  const open = (text) => Uint8Array.fromBase64(text, { alphabet: 'base64url' });
  const { x } = await crypto.subtle.exportKey('jwk', key);
  const ascii = (text) => new TextEncoder().encode(text);
  /** BLAKE3 of at most a chunk of bytes, in the mode of these flags, under a key of eight words. */
  const blake3 = (bytes, key, mode) => {
    const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
    const [START, END, ROOT] = [1, 2, 8];
    const turned = (value, by) => (value >>> by) | (value << (32 - by));
    let chain = key ?? IV;
    const blocks = Math.max(1, Math.ceil(bytes.length / 64));
    for (let block = 0; block < blocks; block += 1) {
      const part = bytes.slice(64 * block, 64 * (block + 1));
      const view = new DataView(new Uint8Array([...part, ...Array(64 - part.length).fill(0)]).buffer);
      let words = Array.from({ length: 16 }, (_, index) => view.getUint32(4 * index, true));
      const flags = mode | (block === 0 ? START : 0) | (block === blocks - 1 ? END | ROOT : 0);
      const state = [...chain, ...IV.slice(0, 4), 0, 0, part.length, flags];
      const mix = (a, b, c, d, x, y) => {
        for (const [word, first, second] of [[x, 16, 12], [y, 8, 7]]) {
          state[a] = (state[a] + state[b] + word) | 0;
          state[d] = turned(state[d] ^ state[a], first);
          state[c] = (state[c] + state[d]) | 0;
          state[b] = turned(state[b] ^ state[c], second);
        }
      };
      for (let round = 0; round < 7; round += 1) {
        for (let index = 0; index < 4; index += 1) mix(index, 4 + index, 8 + index, 12 + index, words[2 * index], words[2 * index + 1]);
        for (let index = 0; index < 4; index += 1) mix(index, 4 + ((index + 1) % 4), 8 + ((index + 2) % 4), 12 + ((index + 3) % 4), words[8 + 2 * index], words[9 + 2 * index]);
        words = ORDER.map((from) => words[from]);
      }
      chain = chain.map((_, index) => (state[index] ^ state[index + 8]) >>> 0);
    }
    return chain;
  };
  /** What is signed instead of a relay's nonce, so that it counts at this host only (`nonce_at` in relay/api). */
  const nonceAt = (host, nonce) => {
    const key = blake3([...ascii(CONTEXT)], null, 32);
    const hash = blake3([...open(nonce), ...ascii(host.toLowerCase().replace(/:(443|80)$/, ''))], key, 64);
    const view = new DataView(new ArrayBuffer(32));
    hash.forEach((word, index) => view.setUint32(4 * index, word, true));
    return new Uint8Array(view.buffer);
  };
  const enter = async (nonce, room, number, host) => {
    const as = number ? 'link' : 'owner';
    const covered = number ? [] : [...open(x), 0, ...ascii('paths')];
    const message = [...ascii(`potluck relay entry v2\0${room}\0${as}\0`), ...nonceAt(host, nonce), ...covered];
    const signature = text(await crypto.subtle.sign('Ed25519', key, new Uint8Array(message)));
    const listing = number ? { key: x } : { key: x, join_key: x, title: 'paths', visible: false };
    return JSON.stringify({ type: 'enter', proof: { as, ...listing, signature } });
  };
  return { enter };
}
