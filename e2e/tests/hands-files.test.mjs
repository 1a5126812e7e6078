// A conversation goes into a file and comes back from it; any other file is refused in one sentence.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { WIDTHS, kitchen } from '../harness/hands.mjs';
import { conversation, store, visit } from '../harness/stored.mjs';
import { assertQuiet, eventually } from '../harness/table.mjs';

const here = kitchen({ soup: { text: 'Soup is hot.' } });
const button = (within, name) => within.getByRole('button', { name, exact: true });

/** The drawer with what exports and imports unfolded. */
async function files(page) {
  await button(page, 'Chats').click();
  const drawer = page.getByRole('dialog', { name: 'Chats' });
  await drawer.getByText('Export and import').click();
  return drawer;
}

async function exported(page, drawer, name) {
  const [download] = await Promise.all([page.waitForEvent('download'), button(drawer, name).click()]);
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
}

const upload = (drawer, name, text) =>
  drawer.getByLabel('Import a conversation').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) });

for (const viewport of WIDTHS) {
  test(`a conversation goes into files and comes back, ${viewport.width} pixels wide`, async () => {
    const device = await here.start('reader', { viewport, gpu: false });
    const { page } = device;
    await store(page, here.relay, [conversation('Of soup', [['Soup?', 'It is **hot**. ☕']])]);
    await visit(page, here.relay);
    await button(page, 'Chats').click();
    await button(page.getByRole('dialog', { name: 'Chats' }), 'Of soup').click();
    const drawer = await files(page);
    const markdown = await exported(page, drawer, 'Markdown');
    assert.equal(markdown.name, 'Of soup.md');
    assert.equal(markdown.text, '# Of soup\n\n## You\n\nSoup?\n\n## Answer (Reciting)\n\nIt is **hot**. ☕\n');
    const messages = await exported(page, drawer, 'OpenAI messages (JSON)');
    assert.deepEqual(JSON.parse(messages.text), { messages: [{ role: 'user', content: 'Soup?' }, { role: 'assistant', content: 'It is **hot**. ☕' }] });
    const own = await exported(page, drawer, 'Potluck (JSON)');
    assert.equal(own.name, 'Of soup.potluck.json');
    const refused = {
      'hello': 'This is no conversation that Potluck exported.',
      [messages.text]: 'This is no conversation that Potluck exported.',
      [own.text.slice(0, 200)]: 'This file is damaged.',
      [own.text.replace('"version": 1', '"version": 2')]: 'A newer version of Potluck exported this conversation.',
      [' '.repeat(34_000_000)]: 'This file is too large',
    };
    for (const [text, sentence] of Object.entries(refused)) {
      await upload(drawer, 'x.json', text);
      await drawer.getByRole('alert').filter({ hasText: sentence }).waitFor();
    }
    await upload(drawer, own.name, own.text.replace('Of soup', 'Of other soup'));
    await drawer.waitFor({ state: 'hidden' });
    await page.locator('.chat-title', { hasText: 'Of other soup' }).waitFor();
    await page.getByText('It is hot. ☕').waitFor();
    await page.reload();
    await button(page, 'Chats').click();
    const titles = page.locator('.chat-name');
    await eventually(() => titles.allTextContents(), (now) => now.length === 2 && now.includes('Of soup') && now.includes('Of other soup'), 'both are there');
    assertQuiet(device);
  });
}
