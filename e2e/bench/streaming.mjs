// What the page does while an answer streams: nodes added and removed, characters that screen readers hear, the longest frame.
// POTLUCK_PAGE measures another page.
//   node e2e/bench/streaming.mjs --tokens 5000
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { Device } from '../harness/browser.mjs';
import { write } from '../harness/reciting.mjs';
import { Relay, builtPage } from '../harness/relay.mjs';
import { set } from '../harness/stored.mjs';
import { endedAnswers, host, isUp, send, status, until } from '../harness/table.mjs';

const { values } = parseArgs({ options: { tokens: { type: 'string', default: '5000' } } });
const tokens = Number(values.tokens);

const sentences = (count) => Array.from({ length: count }, (_, at) => `Sentence ${at} tells of a **soup** that is served *hot* at the long table.`);
const code = Array.from({ length: 30 }, (_, line) => `  let bowl_${line} = pot.ladle(${line});`).join('\n');
const rows = Array.from({ length: 8 }, (_, row) => `| soup ${row} | bread ${row} | ${row} |`).join('\n');
const text = [
  '# A menu', sentences(8).join(' '), sentences(10).map((item) => `- ${item}`).join('\n'), `\`\`\`js\n${code}\n\`\`\``,
  sentences(6).map((line) => `> ${line}`).join('\n'), `| what | with | how many |\n|---|---|---:|\n${rows}`, sentences(8).join(' '), '',
].join('\n\n');

const folder = mkdtempSync(join(tmpdir(), 'potluck-recitals-'));
write(join(folder, 'menu.gguf'), { name: 'menu', text, loop: true });
const relay = await Relay.start({ models: folder });
const device = await Device.start('reader');
try {
  const { page } = device;
  await set(page, relay, { max_tokens: tokens });
  await host(page, relay, { model: 'menu', context: 8192 });
  await until(page, isUp);
  await page.evaluate(watch);
  await send(page, 'What is there?');
  for (;;) {
    const ended = await endedAnswers(page).first().waitFor({ timeout: 10_000 }).then(() => true, () => false);
    if (ended || device.errors.length > 0) break;
  }
  const seen = await page.evaluate(() => ({ ...window.seen, all: document.querySelectorAll('.prose *').length }));
  const received = (await status(page)).tokens_received;
  const median = seen.frames.sort((one, other) => one - other)[seen.frames.length >> 1];
  console.table({
    page: builtPage,
    'tokens received': received,
    'seconds': Math.round(seen.seconds),
    'elements of the answer': seen.all,
    'nodes added': seen.added,
    'nodes removed': seen.removed,
    'characters shown': seen.characters,
    'characters into live regions': seen.heard,
    'median frame, ms': Math.round(median),
    'longest frame, ms': Math.round(seen.frames.at(-1)),
    'long tasks': seen.tasks.length,
    'longest task, ms': Math.round(Math.max(0, ...seen.tasks)),
    'errors': device.errors.length,
  });
} finally {
  await device.stop();
  await relay.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Runs in the page: watches it until the answer ends. */
function watch() {
  const seen = { added: 0, removed: 0, heard: 0, frames: [], tasks: [], seconds: 0, characters: 0 };
  window.seen = seen;
  const elementOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement);
  const nodes = (list) => Array.from(list, (node) => 1 + (node.querySelectorAll?.('*').length ?? 0)).reduce((sum, one) => sum + one, 0);
  const isLive = (element) => {
    const nearest = element?.closest('[aria-live], [role=status], [role=alert], [role=log]');
    return nearest != null && nearest.getAttribute('aria-live') !== 'off';
  };
  new MutationObserver((records) => {
    for (const { type, target, oldValue, addedNodes, removedNodes } of records) {
      const element = elementOf(target);
      if (element?.closest('.prose')) {
        seen.added += nodes(addedNodes);
        seen.removed += nodes(removedNodes);
      }
      if (!isLive(element)) continue;
      if (type === 'characterData') seen.heard += target.data.startsWith(oldValue) ? target.data.length - oldValue.length : target.data.length;
      else for (const node of addedNodes) seen.heard += node.textContent.length;
    }
  }).observe(document.querySelector('.room-chat'), { subtree: true, childList: true, characterData: true, characterDataOldValue: true });
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['longtask'] });
  const begun = performance.now();
  let before = begun;
  const frame = (now) => {
    seen.frames.push(now - before);
    before = now;
    seen.seconds = (now - begun) / 1000;
    seen.characters = document.querySelector('.answer .prose')?.textContent.length ?? 0;
    if (!document.querySelector('.answer:not(.answer-running)')) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
