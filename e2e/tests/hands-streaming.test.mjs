// While an answer streams, what is drawn stays: a selection, the focus; and screen readers hear each sentence once.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WIDTHS, anew, kitchen } from '../harness/hands.mjs';
import { endedAnswers, eventually, send, status } from '../harness/table.mjs';

const sentence = (number) => `Sentence ${number} tells that soup number ${number} is served.`;
const sentences = (first, end) => Array.from({ length: end - first }, (_, at) => sentence(first + at));
const paragraph = (first, end) => sentences(first, end).join(' ');
const items = (first, end) => sentences(first, end).map((text) => `- ${text}`).join('\n');
const code = Array.from({ length: 150 }, (_, line) => `let bowl_${line} = pot.ladle(${line});`).join('\n');

const SENTENCES = 70;
const here = kitchen({
  paragraphs: { text: `First a short one.\n\n${paragraph(0, 400)}\n\n`, loop: true },
  items: { text: `First a short one.\n\n${items(0, 400)}\n\n`, loop: true },
  code: { text: `Here it is:\n\n\`\`\`rust\n${code}\n\`\`\`\n\nAnd more of it.\n\n`, loop: true },
  everything: {
    text: `# A *menu*\n\n${paragraph(0, 20)}\n\n${paragraph(20, 30)}\n\n${items(30, 50)}\n\n\`\`\`js\nlet bowl = 1;\nserve(bowl);\n\`\`\`\n\n> ${paragraph(50, 60)}\n\n${paragraph(60, SENTENCES)}`,
  },
});

const inBrowser = here.browser({ settings: { max_tokens: 4000 } });
const inRoom = (model) => inBrowser(model, { context: 8192 });

/** Asks in a new conversation, in a window of this size. */
async function begin(page, viewport) {
  await anew(page, viewport);
  await send(page, 'Tell me.');
}

const stop = async (page) => {
  await page.getByRole('button', { name: 'Stop' }).click();
  await endedAnswers(page).first().waitFor();
};

/** Waits until so many characters of the last block are drawn, while the answer goes on. */
async function untilDrawn(page, selector, characters) {
  const length = () => page.evaluate((selector) => {
    const last = Array.from(document.querySelectorAll(`.answer-running .prose ${selector}`)).at(-1);
    return { here: last?.textContent.length ?? 0 };
  }, selector);
  return (await eventually(length, ({ here }) => here >= characters, `${characters} characters of ${selector}`)).here;
}

for (const [model, block] of [['paragraphs', 'p'], ['items', 'ul']]) {
  for (const viewport of WIDTHS) {
    test(`what is selected stays selected while ${model} stream, ${viewport.width} pixels wide`, inRoom(model)(async ({ page }) => {
      await begin(page, viewport);
      const begun = await untilDrawn(page, block, 120);
      const selected = await page.evaluate((block) => {
        const last = Array.from(document.querySelectorAll(`.answer-running .prose ${block}`)).at(-1);
        const text = document.createTreeWalker(last, NodeFilter.SHOW_TEXT).nextNode();
        getSelection().setBaseAndExtent(text, 3, text, 24);
        return getSelection().toString();
      }, block);
      assert.equal(selected, sentence(0).slice(3, 24));
      for (const more of [100, 400, 1000]) {
        await untilDrawn(page, block, begun + more);
        assert.equal(await page.evaluate(() => getSelection().toString()), selected, `after ${more} characters more`);
      }
      await stop(page);
      assert.equal(await page.evaluate(() => getSelection().toString()), selected, 'and after the answer');
    }));
  }
}

test('the focus stays on the Copy button of code that streams, and it copies all of it', inRoom('code')(async ({ context, page }) => {
  await begin(page);
  await context.grantPermissions(['clipboard-write']);
  const begun = await untilDrawn(page, 'pre', 100);
  await page.locator('.answer-running .prose .code').first().getByRole('button', { name: 'Copy' }).focus();
  await page.evaluate(() => { window.focused = document.activeElement; });
  for (const more of [100, 400, 1000]) {
    await untilDrawn(page, 'pre', begun + more);
    const stays = await page.evaluate(() => window.focused.matches('.prose .code button') && document.activeElement === window.focused);
    assert.ok(stays, `after ${more} characters more the focus is on ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 80))}`);
  }
  const keywords = () => page.evaluate(() => [...CSS.highlights.get('code-keyword')].map(({ startContainer, startOffset, endOffset }) => startContainer.data.slice(startOffset, endOffset)));
  const words = await keywords();
  assert.deepEqual([...new Set(words)], ['let'], `each of ${words.length} colours is where its keyword is`);
  // The end of the block moves nothing either.
  await page.locator('.answer-running .prose p', { hasText: 'And more of it.' }).first().waitFor();
  assert.ok(await page.evaluate(() => document.activeElement === window.focused), 'the focus stays when the block ends');
  await page.keyboard.press('Enter');
  // The page may not read the clipboard, so it is pasted as a person does.
  const message = page.getByRole('textbox', { name: 'Message' });
  const paste = async () => {
    await message.fill('');
    await page.keyboard.press('Control+V');
    return message.inputValue();
  };
  await eventually(paste, (text) => text.trimEnd() === code, 'the code is copied');
  await message.fill('');
  await stop(page);
}));

/** Records what is added where screen readers listen, and how many nodes are taken out of the answers. */
const listen = (page) =>
  page.evaluate(() => {
    const heard = { texts: [], removed: 0, added: 0 };
    window.heard = heard;
    const isLive = (node) => {
      const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
      const nearest = element?.closest('[aria-live], [role=status], [role=alert], [role=log]');
      return nearest != null && nearest.getAttribute('aria-live') !== 'off';
    };
    const hear = (text) => text && heard.texts.push(text);
    const nodes = (list) => Array.from(list, (node) => (node.querySelectorAll ? 1 + node.querySelectorAll('*').length : 1)).reduce((sum, one) => sum + one, 0);
    const observer = new MutationObserver((records) => {
      for (const { type, target, oldValue, addedNodes, removedNodes } of records) {
        const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
        if (element?.closest('.prose')) {
          heard.added += nodes(addedNodes);
          heard.removed += nodes(removedNodes);
        }
        if (!isLive(target)) continue;
        if (type === 'characterData') hear(target.data.startsWith(oldValue) ? target.data.slice(oldValue.length) : target.data);
        else for (const node of addedNodes) hear(node.textContent);
      }
    });
    observer.observe(document.querySelector('.room-chat'), { subtree: true, childList: true, characterData: true, characterDataOldValue: true });
  });

test('screen readers hear each sentence of an answer once', inRoom('everything')(async ({ page }, context) => {
  await anew(page);
  await listen(page);
  await send(page, 'Tell me.');
  await endedAnswers(page).first().waitFor();
  const { tokens_received } = await status(page);
  // What is said after the last token may take a while; the last sentence comes last.
  const squeezed = (text) => text.replaceAll(/\s+/g, '');
  const times = (text, number) => squeezed(text).split(squeezed(sentence(number))).length - 1;
  const read = () => page.evaluate(() => ({ ...window.heard, shown: document.querySelector('.answer .prose').innerText }));
  const { texts, added, removed, shown } = await eventually(read, ({ texts }) => times(texts.join(''), SENTENCES - 1) > 0, 'the last sentence is heard');
  const heard = texts.join('');
  context.diagnostic(`${tokens_received} tokens, ${shown.length} characters shown, ${heard.length} heard; ${added} nodes added, ${removed} removed`);
  const counts = Array.from({ length: SENTENCES }, (_, number) => times(heard, number));
  const wrong = counts.flatMap((count, number) => (count === 1 ? [] : [`sentence ${number} is heard ${count} times`]));
  assert.deepEqual(wrong.slice(0, 3), []);
  assert.ok(heard.length <= 1.3 * shown.length + 200, `${heard.length} characters are heard, ${shown.length} are shown`);
}));
