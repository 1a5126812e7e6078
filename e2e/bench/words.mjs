// When the words of an answer come: marks at the messages from a node's worker to its page, and nothing else, so that it costs nothing.
import { node } from './experts/marks.mjs';

/** Begins to note in a tab; what was noted before is forgotten. */
export async function watchWords(page) {
  await (await node(page)).evaluate(install);
}

/** Milliseconds between two tokens of the newest answer, a number for each token after its first piece. */
export async function betweenTokens(page) {
  const words = await (await node(page)).evaluate(() => self.potluckWords);
  return words.slice(1).flatMap(({ at, tokens }, index) => Array(tokens).fill((at - words[index].at) / tokens));
}

/** Runs in the worker. */
function install() {
  const isNew = self.potluckWords === undefined;
  self.potluckWords = [];
  if (!isNew) return;
  const post = self.postMessage;
  self.postMessage = function (...args) {
    const tokens = args[0]?.Answer?.event?.Text?.tokens?.length;
    if (tokens) self.potluckWords.push({ at: performance.now(), tokens });
    return post.apply(self, args);
  };
}
