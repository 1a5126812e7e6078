// What a person does on the page, by accessible names, and what tools read from window.potluck.
import assert from 'node:assert/strict';

import { consoleOf } from './browser.mjs';

export const MB = 1_000_000;

/** The snapshot that window.potluck.status() gives. */
export const status = (page) => page.evaluate(() => window.potluck.status());

/** Longest wait for a state; a loaded machine with a software adapter takes its time. */
const PATIENCE = 240_000;

/** Waits until the snapshot fulfils a condition. */
export const until = (page, condition, what = String(condition)) =>
  eventually(() => page.evaluate(() => window.potluck?.status?.() ?? null), condition, what, (snapshot) => told(snapshot, page));

/** Waits until what is read fulfils a condition. */
export async function eventually(read, condition, what = String(condition), told = JSON.stringify) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const now = await read();
    if (now && condition(now)) return now;
    if (Date.now() > deadline) throw new Error(`never came true: ${what}\n${told(now)}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** The plan and the peers first, a line each: reports of failures are cut short. Last what the page said on its console. */
function told(snapshot, page) {
  const { plan, peers, ...rest } = snapshot ?? {};
  const workers = page.workers().map((worker) => worker.url());
  const parts = [{ plan }, ...(peers ?? []), rest, { workers }].map((part) => JSON.stringify(part));
  return [...parts, ...consoleOf(page).slice(-20)].join('\n');
}

export const isUp = (status) => status.plan?.state === 'Up';

/** A plan that runs on this many devices. One of them may hold two stages: the first blocks and the last ones. */
export const isUpOn = (devices) => (status) => isUp(status) && new Set(status.plan.stages.map((stage) => stage.peer)).size === devices;

/** The picker shows a file's own title; the tests' models are told apart by their sizes. */
const sizes = { tiny: '2.8 MB', 'six-blocks': '25.7 MB', 'many-experts': '27.9 MB', floats: '54.6 MB' };
const named = (model) => new RegExp(`(^|[^0-9.])${(sizes[model] ?? model).replaceAll('.', '\\.')}`);

async function lend(scope, bytes) {
  const field = scope.getByLabel('Memory this device lends, exactly');
  await field.fill(`${bytes / MB} MB`);
  await field.press('Tab');
}

/** Opens what few people change. */
async function moreOptions(dialog) {
  const fold = dialog.locator('details:has(> summary:text("More options"))');
  if ((await fold.getAttribute('open')) === null) await fold.locator('> summary').click();
}

/** Chooses how experts are spread, by the values that the command line takes. */
async function spread(dialog, { wire, copies, hedging }) {
  const fold = dialog.locator('details:has(> summary:text("How experts are spread"))');
  if ((await fold.getAttribute('open')) === null) await fold.locator('summary').click();
  const chosen = { 'Numbers sent to experts and back': wire, 'Devices that hold each expert': copies, 'When a second device is asked': hedging };
  for (const [label, value] of Object.entries(chosen)) if (value) await fold.getByLabel(label).selectOption(String(value));
}

/**
 * Host a model: the picker, a model, what to lend, whether to keep words, who guesses experts, how they are spread (`wire`, `copies`,
 * `hedging`), open. Returns the room's link.
 */
export async function host(page, relay, { model, lends, share, keepWords, context, guesser, wire, copies, hedging } = {}) {
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).click();
  const dialog = page.getByRole('dialog', { name: 'Host a model' });
  if (model) await dialog.locator('label', { hasText: named(model) }).click();
  if (lends) await lend(dialog, lends);
  if ([share, keepWords, context, guesser, wire, copies, hedging].some((choice) => choice !== undefined)) await moreOptions(dialog);
  if (share) await dialog.locator('label', { hasText: share }).first().click();
  if (keepWords !== undefined) await dialog.getByLabel('Keep my words here').setChecked(keepWords);
  if (context) await dialog.getByLabel('Context length').selectOption(String(context));
  if (guesser) await dialog.getByLabel('Predict the next experts').selectOption(guesser);
  if (wire || copies || hedging) await spread(dialog, { wire, copies, hedging });
  await dialog.getByRole('button', { name: 'Open the room' }).click();
  await until(page, (status) => status.room !== null && status.connection === 'Connected');
  const { link } = (await status(page)).room;
  return relay.url + link;
}

/** Host a file of this device's disk. Does not wait: a bad file never becomes a room with a plan. */
export async function hostFile(page, relay, path, { share } = {}) {
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).click();
  const dialog = page.getByRole('dialog', { name: 'Host a model' });
  await dialog.getByRole('tab', { name: 'This device' }).click();
  await dialog.locator('input[type=file]').setInputFiles(path);
  if (share) {
    await moreOptions(dialog);
    await dialog.locator('label', { hasText: share }).first().click();
  }
  await dialog.getByRole('button', { name: 'Open the room' }).click();
}

/** The button that lends this device's GPU. */
export const CONTRIBUTE = 'Contribute GPU';

/** Opens a room's link and lends the GPU. */
export async function contribute(page, link, { lends } = {}) {
  await page.goto(link);
  await page.getByRole('button', { name: CONTRIBUTE }).click();
  await until(page, (status) => status.role.worker);
  if (!lends) return;
  // With what the page lends by default the model fits; from there the loan is changed.
  await until(page, isUp);
  await changeLoan(page, lends);
}

/** Changes what a device lends already. */
export async function changeLoan(page, bytes) {
  await openLoan(page);
  await lend(page, bytes);
  await page.getByRole('button', { name: 'Lend this much' }).click();
}

/** Takes back what a device lends. */
export async function lendNoMore(page) {
  await openLoan(page);
  await page.getByRole('button', { name: 'Withdraw GPU' }).click();
  await until(page, (status) => !status.role.worker);
}

/** Opens what can be changed of a loan. A click is lost if the card grows under it. */
async function openLoan(page) {
  await openTable(page);
  const fold = page.locator('details', { has: page.locator('summary', { hasText: 'Change how much this device lends' }) });
  while (!(await fold.evaluate((fold) => fold.open))) {
    await fold.locator('summary').click();
    await page.waitForTimeout(100);
  }
}

/** On narrow screens the table is folded into a strip. */
async function openTable(page) {
  const strip = page.locator('.strip');
  if ((await strip.isVisible()) && (await strip.getAttribute('aria-expanded')) === 'false') await strip.click();
}

/** Chooses where a device connects directly, in its settings: Automatic, Always or Never. */
export async function connectDirectly(page, choice) {
  await page.getByRole('button', { name: 'Settings' }).click();
  const drawer = page.getByRole('dialog', { name: 'Settings' });
  await drawer.getByRole('group', { name: 'Direct connections' }).getByRole('radio', { name: choice }).check();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'hidden' });
}

/** Opens a room's link to chat only. */
export async function enter(page, link) {
  await page.goto(link);
  await page.getByRole('button', { name: 'Just chat' }).click();
  await until(page, (status) => status.connection === 'Connected' && status.room !== null);
}

/** Asks through the tools' handle. */
export const ask = (page, text, options) =>
  page.evaluate(([text, options]) => window.potluck.chat(text, options), [text, options]);

/** Asks, and waits until so many tokens of the answer are here. `asked` is what comes of it. */
export async function begin(page, text, options, tokens = 1) {
  const { tokens_received } = await status(page);
  const asked = ask(page, text, options);
  await until(page, (now) => now.tokens_received >= tokens_received + tokens, `${tokens} tokens are here`);
  return { asked };
}

/** Writes a message as a person does. */
export async function send(page, text) {
  const message = page.getByRole('textbox', { name: 'Message' });
  await message.fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

/** Keeps back what the page wants to draw. Returns what lets it be drawn. */
export async function holdFrames(page) {
  await page.evaluate(() => {
    const frames = [];
    const { requestAnimationFrame } = window;
    window.requestAnimationFrame = (draw) => frames.push(draw);
    window.drawFrames = () => {
      window.requestAnimationFrame = requestAnimationFrame;
      for (const draw of frames) draw(performance.now());
      return frames.length;
    };
  });
  return () => page.evaluate(() => window.drawFrames());
}

/** The answers of the open conversation that have ended. */
export const endedAnswers = (page) => page.locator('.answer:not(.answer-running)');

/** Waits until the first answer of the conversation has text. One of a made-up model may end before it has any. */
export const answerBegins = (page) =>
  page.locator('.answer .prose').getByText(/\S/).or(endedAnswers(page)).first().waitFor();

/** Stops the conversation's first answer once it has text, if it has not ended by itself. */
export async function stopAnswer(page) {
  await answerBegins(page);
  await page.getByRole('button', { name: 'Stop' }).click({ timeout: 10_000 }).catch(() => {});
  await endedAnswers(page).first().waitFor();
}

/** No error on any console. */
export function assertQuiet(...devices) {
  for (const device of devices) {
    assert.deepEqual(device.errors, [], `the console of ${device.name} must be free of errors`);
  }
}
