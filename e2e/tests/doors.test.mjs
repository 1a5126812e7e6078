// The doors of a room: its host closes the tab and hosts on, hosts in one tab only, puts devices out, and gives out invites.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { Device } from '../harness/browser.mjs';
import { make } from '../harness/models.mjs';
import { Relay } from '../harness/relay.mjs';
import { story } from '../harness/story.mjs';
import { CONTRIBUTE, assertQuiet, begin, endedAnswers, enter, host, isUp, send, status, stopAnswer, until } from '../harness/table.mjs';

const QUESTION = 'Is anybody at home';

let relay;
const devices = {};
let link;
const step = story();

before(async () => {
  relay = await Relay.start({ models: make('tiny') });
  for (const name of ['host', 'guest']) devices[name] = await Device.start(name);
});

after(async () => {
  for (const device of Object.values(devices)) await device.stop();
  await relay?.stop();
});

/** The host's tab is closed for good; the profile stays. */
async function closeTab(device) {
  const next = await device.newTab();
  await device.page.close();
  device.page = next;
}

const isHosting = (status) => status.role.coordinator && status.connection === 'Connected' && isUp(status);
const isInside = (status) => status.role.guest && status.connection === 'Connected';
const isClosed = (status) => status.connection.Closed !== undefined;

/** The row of the other device at the host's table, opened. */
async function otherRow(page) {
  const row = page.locator('.seat-row', { hasNotText: '(you)' });
  const button = row.locator('.seat-button');
  if ((await button.getAttribute('aria-expanded')) === 'false') await button.click();
  return row;
}

async function putOut(page, how) {
  const row = await otherRow(page);
  await row.getByRole('button', { name: how }).click();
  await row.getByRole('alertdialog').getByRole('button', { name: how }).click();
}

/** Makes an invite in the dialog; its link. */
async function invite(page, kind, { ask = false, read } = {}) {
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite a device' });
  await dialog.locator('label', { hasText: kind }).click();
  if (ask) await dialog.getByText('Ask me first').click();
  const before = (await status(page)).doors.invites.length;
  await dialog.getByRole('button', { name: 'Make an invite' }).click();
  const { doors } = await until(page, (status) => status.doors.invites.length > before);
  await dialog.locator('.invite-link').first().waitFor();
  const link = relay.url + doors.invites[0].link;
  await read?.(dialog, link);
  await dialog.getByRole('button', { name: 'Close' }).click();
  return link;
}

step('a room has a host, a guest and a conversation', async () => {
  link = await host(devices.host.page, relay, { model: 'tiny', context: 512 });
  await until(devices.host.page, isUp);
  const share = devices.host.page.getByRole('group', { name: 'Share the work' });
  await share.locator('label', { hasText: 'Everyone takes part' }).click();
  await until(devices.host.page, (status) => isUp(status) && status.plan.sharing === 'Everyone');
  await send(devices.host.page, QUESTION);
  // The context has room for the question that follows.
  await stopAnswer(devices.host.page);
  await enter(devices.guest.page, link);
  await until(devices.guest.page, isUp);
});

step('the host closes its tab for good, opens the site again and hosts on, with the conversation and its choices', async () => {
  const room = (await status(devices.host.page)).room.id;
  await closeTab(devices.host);
  await until(devices.guest.page, (status) => status.connection === 'WaitingForHost');
  const { page } = devices.host;
  await page.goto(relay.url);
  const card = page.getByRole('list', { name: 'Your rooms' }).getByRole('listitem');
  await card.getByText(/^Your room with/).waitFor();
  await card.getByRole('button', { name: 'Open it again' }).click();
  const now = await until(page, isHosting);
  assert.equal(now.room.id, room, 'it is the same room');
  assert.equal(now.plan.sharing, 'Everyone', 'the work is shared as it was last');
  await page.getByText(QUESTION).first().waitFor();
  await until(devices.guest.page, (status) => isInside(status) && isUp(status));
});

step('the address of an own room hosts on at once', async () => {
  await closeTab(devices.host);
  await devices.host.page.goto(link);
  await until(devices.host.page, isHosting);
  await until(devices.guest.page, (status) => isInside(status) && isUp(status));
});

step('a second tab of the same browser does not host the room too', async () => {
  const second = await devices.host.newTab();
  await second.goto(link);
  await second.getByText('Another tab in this browser is hosting this room.').waitFor();
  await second.getByRole('button', { name: 'Just chat' }).click();
  const inside = await until(second, isInside);
  assert.equal(inside.role.coordinator, false);
  assert.ok(isHosting(await status(devices.host.page)), 'the first tab hosts as before');
  const door = await devices.host.newTab();
  await door.goto(relay.url);
  await door.getByRole('button', { name: 'Host a model' }).waitFor();
  await door.locator('.own-rooms[aria-busy=false]').waitFor({ state: 'attached' });
  assert.equal(await door.getByText('Open it again').count(), 0, 'a room that a tab hosts is not offered');
  await door.close();
  await second.close();
  await until(devices.host.page, (status) => status.peers.length === 2);
});

step('a conversation that is open in two tabs shows what the other one wrote once it is looked at', async () => {
  const following = 'Then who opens the door';
  const second = await devices.host.newTab();
  await enter(second, link);
  await until(second, isUp);
  await second.getByRole('button', { name: 'Chats' }).click();
  await second.getByRole('dialog', { name: 'Chats' }).getByRole('button', { name: QUESTION, exact: true }).click();
  await send(second, following);
  await endedAnswers(second).nth(1).waitFor();
  const { page } = devices.host;
  // The other tab stores its answer a moment later than it shows it.
  const looking = await page.evaluate(() => setInterval(() => window.dispatchEvent(new Event('focus')), 200));
  await page.locator('.question', { hasText: following }).waitFor();
  await page.evaluate((timer) => clearInterval(timer), looking);
  await second.close();
  await until(devices.host.page, (status) => status.peers.length === 2);
});

step('the host removes a device, which is told and may come back', async () => {
  await putOut(devices.host.page, 'Remove');
  const { page } = devices.guest;
  await page.getByText('The host removed this device from the room.').first().waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await until(page, isInside);
});

step('the host bans a device, which stays out until the ban is lifted', async () => {
  await until(devices.host.page, (status) => status.peers.length === 2);
  await putOut(devices.host.page, 'Ban');
  const { page } = devices.guest;
  await page.getByText('does not let it in again').first().waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('The host does not let this device into the room.').first().waitFor();
  await devices.host.page.getByRole('button', { name: 'Invite', exact: true }).click();
  const dialog = devices.host.page.getByRole('dialog', { name: 'Invite a device' });
  const { key } = await status(page);
  const tag = `${key.slice(0, 4)} ${key.slice(4, 8)}`;
  await dialog.getByRole('region', { name: 'Banned devices' }).getByText(tag).waitFor();
  await dialog.getByRole('button', { name: 'Lift the ban' }).click();
  await until(devices.host.page, (status) => status.doors.banned.length === 0);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Try again' }).click();
  await until(page, isInside);
});

step('a link that the browser cannot store is not replaced', async () => {
  const { page } = devices.host;
  const before = await status(page);
  await page.evaluate(() => {
    window.storedPut = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = () => {
      throw new DOMException('The storage is full.', 'QuotaExceededError');
    };
  });
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite a device' });
  page.once('dialog', (question) => question.accept());
  await dialog.getByRole('button', { name: 'Replace link' }).click();
  await page.getByText('The link was not replaced').first().waitFor({ state: 'attached' });
  await page.evaluate(() => {
    IDBObjectStore.prototype.put = window.storedPut;
  });
  await dialog.getByRole('button', { name: 'Close' }).click();
  assert.equal((await status(page)).room.link, before.room.link);
});

step('the host replaces the link: who is inside goes on with an answer, the earlier link lets in nobody new, and the new one does', async () => {
  const { page } = devices.host;
  const guest = devices.guest.page;
  await until(guest, isUp);
  const { asked } = await begin(guest, 'Does this go on', { temperature: 0, max_tokens: 60 });
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Invite a device' });
  page.once('dialog', (question) => question.accept());
  await dialog.getByRole('button', { name: 'Replace link' }).click();
  const earlier = link;
  const { room } = await until(page, (status) => !earlier.endsWith(status.room.link));
  link = relay.url + room.link;
  await dialog.locator('.invite-link', { hasText: room.link }).waitFor();
  await dialog.getByText(/The room's link was replaced/).waitFor({ state: 'attached' });
  await dialog.getByRole('button', { name: 'Close' }).click();
  await until(guest, (status) => isInside(status) && status.room.key === room.key);
  const answer = await asked;
  assert.ok(answer.text.length > 0, 'the answer goes on');
  const newcomer = await Device.start('newcomer');
  try {
    await newcomer.page.goto(earlier);
    await newcomer.page.getByRole('button', { name: 'Just chat' }).click();
    await newcomer.page.getByText('This link was replaced. Ask the host for the new one.').first().waitFor();
    await until(newcomer.page, isClosed);
    // Opened in the same tab.
    await newcomer.page.goto(link);
    await until(newcomer.page, isInside);
    await newcomer.page.getByRole('button', { name: 'Leave the room' }).click();
    assertQuiet(newcomer);
  } finally {
    await newcomer.stop();
  }
  // Both remember it over a reload.
  await guest.reload();
  await until(guest, isInside);
  await page.reload();
  const again = await until(page, (status) => isHosting(status) && status.room.key === room.key);
  assert.equal(again.room.link, room.link);
  await until(guest, (status) => isInside(status) && isUp(status));
});

step('an invite that asks first shows the same three words on both screens', async () => {
  const asked = await invite(devices.host.page, 'Lend a GPU', { ask: true });
  await devices.guest.page.getByRole('button', { name: 'Leave the room' }).click();
  await devices.guest.page.goto(asked);
  await devices.guest.page.getByRole('button', { name: 'Just chat' }).click();
  await until(devices.guest.page, (status) => status.connection === 'WaitingForHost');
  await until(devices.guest.page, (status) => Boolean(status.host_words));
  const { host_words: words } = await status(devices.guest.page);
  assert.match(words, /^[a-z]+ [a-z]+ [a-z]+$/);
  await devices.guest.page.getByText(words).first().waitFor();
  const request = devices.host.page.locator('.asking');
  await request.getByText(words).waitFor();
  await request.getByRole('button', { name: 'Allow' }).click();
  await until(devices.guest.page, isInside);
});

step('an invite to chat offers no GPU button and lets its holder in', async () => {
  const chat = await invite(devices.host.page, 'Only chat');
  const { page } = devices.guest;
  await page.getByRole('button', { name: 'Leave the room' }).click();
  await page.goto(chat);
  await page.getByRole('button', { name: 'Just chat' }).waitFor();
  assert.equal(await page.getByRole('button', { name: CONTRIBUTE }).count(), 0);
  await page.getByRole('button', { name: 'Just chat' }).click();
  await until(page, isInside);
  await page.getByText('You are invited to chat.').first().waitFor();
});

step('other programs ask with an invite to chat, by the command on the page', async () => {
  const { page } = devices.host;
  await invite(page, 'Other programs', {
    read: async (dialog, link) => {
      const [command, address] = await dialog.locator('.programs .mono').allTextContents();
      assert.match(command, /^potluck-node serve "http[^"]+"$/);
      assert.ok(command.includes(new URL(link).hash), command);
      assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/v1$/);
    },
  });
  const { doors } = await status(page);
  assert.equal(doors.invites[0].invite.kind, 'Chat');
});

step('a host whose clock is wrong is told before it gives out an invite', async () => {
  const { page } = devices.host;
  const choose = async () => {
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite a device' });
    const asked = page.waitForResponse((reply) => new URL(reply.url()).pathname === '/healthz');
    await dialog.locator('label', { hasText: 'Lend a GPU' }).click();
    await (await asked).finished();
    return dialog;
  };
  await page.clock.setSystemTime(Date.now() + 3 * 3_600_000);
  let dialog = await choose();
  await dialog.getByText('The clocks of this device and the relay differ by 3 h.').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.clock.setSystemTime(Date.now());
  dialog = await choose();
  await dialog.getByRole('button', { name: 'Make an invite' }).waitFor();
  assert.equal(await dialog.getByText('The clocks of this device').count(), 0);
  await dialog.getByRole('button', { name: 'Close' }).click();
});

step('an expired invite says so in one sentence', async () => {
  const { page } = devices.host;
  await invite(page, 'Lend a GPU');
  // As if the host had given it out long ago.
  await page.evaluate(() => {
    const session = JSON.parse(sessionStorage.getItem('potluck.session'));
    session.place.part.Host.doors.invites.at(-1).invite.expires = 1;
    sessionStorage.setItem('potluck.session', JSON.stringify(session));
  });
  await page.reload();
  const { doors } = await until(page, (status) => isHosting(status) && status.doors?.invites[0]?.invite.expires === 1);
  const newcomer = await Device.start('newcomer');
  try {
    await newcomer.page.goto(relay.url + doors.invites[0].link);
    await newcomer.page.getByRole('button', { name: 'Just chat' }).click();
    await newcomer.page.getByText('This invite has expired. Ask the host for a new one.').first().waitFor();
    await until(newcomer.page, isClosed);
    assertQuiet(newcomer);
  } finally {
    await newcomer.stop();
  }
});

step('a tab that opens another own room again keeps the one that it hosted', async () => {
  const owner = await Device.start('owner');
  const hostsNew = async () => {
    await host(owner.page, relay, { model: 'tiny', context: 512 });
    return (await until(owner.page, isHosting)).room.id;
  };
  const openOther = async (id) => {
    await owner.page.goBack();
    const card = owner.page.getByRole('list', { name: 'Your rooms' }).getByRole('listitem');
    await card.getByRole('button', { name: 'Open it again' }).click();
    await until(owner.page, (status) => isHosting(status) && status.room.id === id, `it hosts ${id}`);
  };
  try {
    const first = await hostsNew();
    await closeTab(owner);
    const second = await hostsNew();
    await openOther(first);
    await openOther(second);
    assertQuiet(owner);
  } finally {
    await owner.stop();
  }
});

/** Whoever reads the page's database has to wait for what is being written. */
const isStored = (page) =>
  page.evaluate(() => new Promise((done, failed) => {
    const open = indexedDB.open('potluck-page');
    open.onerror = () => failed(open.error);
    open.onsuccess = () => {
      const read = open.result.transaction('page').objectStore('page').getAllKeys();
      read.onsuccess = () => {
        open.result.close();
        done();
      };
    };
  }));

step('a room that its host ends is over, and is not offered again', async () => {
  const { page } = devices.host;
  await page.getByRole('button', { name: 'Leave the room' }).click();
  await page.getByRole('button', { name: 'End the room' }).click();
  await isStored(page);
  await page.goto(relay.url);
  await page.getByRole('button', { name: 'Host a model' }).waitFor();
  await page.locator('.own-rooms[aria-busy=false]').waitFor({ state: 'attached' });
  assert.equal(await page.getByText('Open it again').count(), 0);
  assertQuiet(devices.host, devices.guest);
});
