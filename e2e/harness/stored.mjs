// Conversations as the page stores them in the browser, and settings: made by tests before the page reads them.
import { randomInt } from 'node:crypto';

/** A conversation of questions with their answers: `turns` are pairs of texts. */
export function conversation(title, turns, id = `stored-${randomInt(1e12)}`) {
  const answer = (text) => ({ request: null, text, state: 'Complete', timings: null, model: 'Reciting' });
  return {
    revision: randomInt(2 ** 47),
    id,
    title,
    renamed: true,
    changed: Date.now(),
    turns: turns.map(([question, text]) => ({ question, answer: answer(text) })),
  };
}

/** Puts records into the page's database. It exists once the page has been opened; the page reads it when it is loaded. */
export async function keep(page, store, records) {
  await page.evaluate(async ([store, records]) => {
    const open = indexedDB.open('potluck-page');
    const result = (request) => new Promise((done, fail) => Object.assign(request, { onsuccess: () => done(request.result), onerror: () => fail(request.error) }));
    const database = await result(open);
    const transaction = database.transaction(store, 'readwrite');
    for (const [id, record] of records) transaction.objectStore(store).put(JSON.stringify(record), id);
    await new Promise((done, fail) => Object.assign(transaction, { oncomplete: done, onabort: () => fail(transaction.error) }));
    database.close();
  }, [store, records]);
}

/** The records of one of the page's stores. */
export const kept = (page, store) =>
  page.evaluate(async (store) => {
    const result = (request) => new Promise((done, fail) => Object.assign(request, { onsuccess: () => done(request.result), onerror: () => fail(request.error) }));
    const database = await result(indexedDB.open('potluck-page'));
    const records = await result(database.transaction(store).objectStore(store).getAll());
    database.close();
    return records.map((record) => JSON.parse(record));
  }, store);

/** Opens the front page, which makes the database. */
export async function visit(page, relay) {
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).waitFor();
}

/** Stores conversations in a browser. Many go in portions, so that no message is too long. */
export async function store(page, relay, conversations) {
  await visit(page, relay);
  for (let at = 0; at < conversations.length; at += 500) {
    await keep(page, 'conversations', conversations.slice(at, at + 500).map((record) => [record.id, record]));
  }
}

/** Stores settings in a browser; those that are not named keep their defaults. */
export async function set(page, relay, settings) {
  await visit(page, relay);
  await keep(page, 'page', [['settings', settings]]);
}

/** Makes a conversation the one that this tab opens when it is loaded again. */
export const chooseOpen = (page, id) =>
  page.evaluate((id) => {
    const session = JSON.parse(sessionStorage.getItem('potluck.session'));
    sessionStorage.setItem('potluck.session', JSON.stringify({ ...session, conversation: id }));
  }, id);

/** Opens a conversation of the list in the room. */
export async function openChat(page, title) {
  await page.getByRole('button', { name: 'Chats' }).click();
  const drawer = page.getByRole('dialog', { name: 'Chats' });
  await drawer.getByRole('button', { name: title, exact: true }).click();
  await drawer.waitFor({ state: 'hidden' });
  await page.locator('.chat-title', { hasText: title }).waitFor();
}
