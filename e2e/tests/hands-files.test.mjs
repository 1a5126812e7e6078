// A conversation goes into a file and comes back from it; any other file is refused in one sentence. Text files go along with questions.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { WIDTHS, kitchen } from '../harness/hands.mjs';
import { conversation, store, visit } from '../harness/stored.mjs';
import { assertQuiet, eventually, isUp, until } from '../harness/table.mjs';

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

/** A conversation as ChatGPT exports it: a question with two answers, of which the second is shown. */
const chatGpt = (title, time) => {
  const message = (role, text) => ({ author: { role }, content: { content_type: 'text', parts: [text] }, recipient: 'all', metadata: {} });
  return {
    title,
    update_time: time,
    current_node: 'b',
    mapping: {
      root: { message: null, parent: null, children: ['q'] },
      q: { message: message('user', `A question about ${title}`), parent: 'root', children: ['a', 'b'] },
      a: { message: message('assistant', `First answer to ${title}`), parent: 'q', children: [] },
      b: { message: message('assistant', `Second answer to ${title}`), parent: 'q', children: [] },
    },
  };
};

const upload = (drawer, name, text) =>
  drawer.getByLabel('Import conversations').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) });

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
    const page_ = await exported(page, drawer, 'Web page (HTML)');
    assert.equal(page_.name, 'Of soup.html');
    assert.match(page_.text, /<div class="question" dir="auto">Soup\?<\/div>/);
    assert.match(page_.text, /It is <strong>hot<\/strong>\. ☕/);
    assert.doesNotMatch(page_.text, /<script|<button/, 'nothing in it runs');
    const own = await exported(page, drawer, 'Potluck (JSON)');
    assert.equal(own.name, 'Of soup.potluck.json');
    const refused = {
      'hello': 'This file has no conversation that can be read.',
      '{"messages": []}': 'This file has no question.',
      [own.text.slice(0, 200)]: 'This file is damaged.',
      [own.text.replace('"version": 1', '"version": 2')]: 'A newer version of Potluck exported this conversation.',
      [' '.repeat(51_000_000)]: 'This file is too large',
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
    const dialog = page.getByRole('dialog', { name: 'Chats' });
    await dialog.getByText('Export and import').click();
    await upload(dialog, 'conversations.json', JSON.stringify([chatGpt('Of stew', 2), { mapping: 7 }, chatGpt('Of bread', 1)]));
    await page.getByText('2 conversations were imported.').waitFor();
    await page.getByText('1 other conversation of the file cannot be read.').waitFor();
    await page.locator('.chat-title', { hasText: 'Of stew' }).waitFor();
    await page.getByText('Second answer to Of stew').waitFor();
    await page.getByRole('button', { name: 'Former answer' }).click();
    await page.getByText('First answer to Of stew').waitFor();
    assertQuiet(device);
  });
}

for (const viewport of WIDTHS) {
  test(`text files go along with a question, ${viewport.width} pixels wide`, async () => {
    const device = await here.start('attaches', { viewport });
    const { page } = device;
    await here.open(page, 'soup');
    const chips = page.locator('.file-chip');
    const file = (name, text, mimeType = 'text/plain') => ({ name, mimeType, buffer: Buffer.from(text, 'latin1') });
    const attach = (...files) => page.getByLabel('Attach text files').setInputFiles(files);
    await attach(file('prices.csv', 'soup,3\r\nK\xe4se,4\r\n'), file('photo.png', '\x89PNG\0\0'));
    await page.getByText('photo.png is not a text file.').waitFor();
    await chips.filter({ hasText: 'prices.csv' }).waitFor();
    await attach(file('long.txt', 'x'.repeat(1_048_577)));
    await page.getByText('long.txt is too large: the files of a message may have 1 MB together.').waitFor();
    await attach(file('other.md', '# Other'));
    await chips.nth(1).getByRole('button', { name: 'Remove other.md' }).click();
    await page.getByLabel('Message').fill('What is dear?');
    await eventually(() => chips.count(), (count) => count === 1, 'one is left');
    await page.reload();
    await chips.filter({ hasText: 'prices.csv' }).waitFor();
    await until(page, isUp);
    await page.getByLabel('Message').press('Enter');
    await page.locator('.answer-foot').waitFor();
    assert.equal(await chips.count(), 0);
    assert.equal(await page.locator('.question').innerText(), 'What is dear?');
    await page.locator('.sent-file summary').click();
    await eventually(() => page.locator('.sent-file pre').innerText(), (text) => text === 'soup,3\nKäse,4', 'what is in the file');
    await page.getByRole('button', { name: 'Edit' }).click();
    const editor = page.locator('.question-editor');
    await editor.locator('.file-chip').waitFor();
    assert.equal(await editor.getByLabel('Your question').inputValue(), 'What is dear?');
    assertQuiet(device);
  });
}
