// Record pages as people and attackers use them. Usage: pages.mjs BINARY FOLDER; tests/browser/run calls it.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { chromium } from 'playwright-core';

import { startAuthority } from './authority.mjs';
import { checksIn } from './checks.mjs';
import { assertAccessible, assertNamed, assertNoSidewaysScroll, assertReadable } from './look.mjs';
import { HOSTILE, LONG, ODD_IDS, RECORDS, encoded, handleOf } from './records.mjs';
import { TOKENS, importRecords, start } from './server.mjs';

const [binary, folder] = process.argv.slice(2);
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

importRecords(binary, folder);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
const server = await start(binary, folder, ['ann', 'bob']);
const open = await start(binary, folder);
const authority = await startAuthority('ann');
const signInServer = await start(binary, folder, undefined, authority.origin);

const { check, finish } = checksIn(browser, [`${authority.origin}/`]);

const pathOf = (who, id) => `${server.origin}/records/${encoded(handleOf(who, id)).replace(/%2F/g, '/').replace(/%3A/g, ':')}`;
const linkOf = async (id, who = 'ann') => (await server.document(who, handleOf(who, id))).url;
const title = (page) => page.locator('h1').textContent();
const textOf = (page) => page.locator('#record').evaluate((element) => element.textContent);
const isSignIn = async (page) => assert.equal(await title(page), 'This record is not public');

/** Follows a link to its record. */
async function follow(page, link) {
  await page.goto(link);
  await page.getByRole('button', { name: 'Open the record' }).click();
  await page.locator('#record').waitFor();
}

/** Opens the text of the record that is shown, as a model reads it. */
async function openText(page) {
  await page.goto(`${page.url().split('?')[0]}?view=text`);
  await page.locator('pre#record').waitFor();
}

/** Enters a token at the page of a record. */
async function signIn(page, path, token) {
  await page.goto(path);
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForLoadState();
}

/** Presses Tab until the element with the text `name` has the focus. */
async function tabTo(page, name) {
  for (let presses = 0; presses < 20; presses += 1) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate(() => document.activeElement?.textContent?.trim())) === name) return;
  }
  assert.fail(`the keyboard does not reach ${name}`);
}

const picture = async (page, name) => {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
};

await check('a link opens its record after a click only', async (reader) => {
  const page = await reader();
  const link = await linkOf('letter');
  assert.ok(link.startsWith(`${server.origin}/records/`) && link.includes('?link='), link);
  for (const method of ['HEAD', 'GET']) {
    const answer = await fetch(link, { method });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('set-cookie'), null);
    assert.ok(!(await answer.text()).includes('Lindqvist'));
  }
  for (let looks = 0; looks < 2; looks += 1) {
    await page.goto(link);
    await page.getByRole('button', { name: 'Open the record' }).waitFor();
    assert.equal(await page.locator('#record').count(), 0);
  }
  await page.getByRole('button').click();
  assert.equal(await title(page), RECORDS.letter.subject);
});

await check('a record is opened and left with the keyboard alone', async (reader) => {
  const page = await reader();
  await page.goto(await linkOf('letter'));
  await page.locator('button:focus').waitFor(); // the only control has the focus
  await page.keyboard.press('Enter');
  await page.locator('#record').waitFor();
  assert.equal(page.url(), pathOf('ann', 'letter'), 'what opened it is out of the address');
  await tabTo(page, 'Sign out');
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(ring, 'solid', 'what has the focus is marked');
  await page.keyboard.press('Enter');
  await page.getByText('This browser no longer shows records').waitFor();
  await page.goto(pathOf('ann', 'letter'));
  await isSignIn(page);
});

await check('a link opens one record, any number of times', async (reader) => {
  const [page, other] = [await reader(), await reader()];
  const link = await linkOf('letter');
  await follow(page, link);
  await page.reload();
  assert.equal(await title(page), RECORDS.letter.subject);
  assert.equal((await page.goto(pathOf('ann', 'letter'))).status(), 200);
  assert.equal((await other.goto(pathOf('ann', 'letter'))).status(), 401);
  await isSignIn(other);
  await follow(other, link);
  assert.equal(await title(other), RECORDS.letter.subject);
  assert.equal((await page.goto(pathOf('ann', 'secret'))).status(), 401);
  await isSignIn(page);
  await page.goto(`${pathOf('ann', 'secret')}?${new URL(await linkOf('emoji')).searchParams}`);
  await isSignIn(page);
  // A second link opens a second record, and the first stays open.
  await follow(page, await linkOf('emoji'));
  assert.equal((await page.goto(pathOf('ann', 'letter'))).status(), 200);
});

await check('a token opens its own records only', async (reader) => {
  const [ann, bob, stranger] = [await reader(), await reader(), await reader()];
  await signIn(ann, pathOf('ann', 'letter'), TOKENS.ann);
  assert.equal(await title(ann), RECORDS.letter.subject);
  for (const id of ['secret', 'emoji', 'hostile']) assert.equal((await ann.goto(pathOf('ann', id))).status(), 200, id);
  await signIn(bob, pathOf('bob', 'secret'), TOKENS.bob);
  assert.match(await textOf(bob), /only for bob/);
  for (const [page, path] of [[ann, pathOf('bob', 'secret')], [bob, pathOf('ann', 'secret')]]) {
    assert.equal((await page.goto(path)).status(), 404);
    assert.doesNotMatch(await page.content(), /nly for/);
    await assertNamed(page, await title(page));
  }
  // A link of Ann does not give her session to Bob's browser: it begins a session of its own.
  await follow(bob, await linkOf('letter'));
  assert.equal((await bob.goto(pathOf('ann', 'secret'))).status(), 401);
  await signIn(stranger, pathOf('ann', 'letter'), `${TOKENS.ann}x`);
  await isSignIn(stranger);
  assert.match(await stranger.locator('main').textContent(), /token/);
  assert.ok(!(await stranger.content()).includes(TOKENS.ann), 'the token is not said again');
  assert.deepEqual(await stranger.context().cookies(), []);
});

await check('the cookie is hidden from scripts, and refused after its session has ended', async (reader) => {
  const page = await reader();
  await signIn(page, pathOf('ann', 'letter'), TOKENS.ann);
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Lax', '/']);
  const kept = { headers: { cookie: `${cookie.name}=${cookie.value}` } };
  assert.equal((await fetch(pathOf('ann', 'secret'), kept)).status, 200);
  await signIn(page, pathOf('bob', 'secret'), TOKENS.bob).catch(() => {}); // refused: the session is Ann's
  await page.goto(pathOf('ann', 'letter'));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('This browser no longer shows records').waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  assert.equal((await fetch(pathOf('ann', 'secret'), kept)).status, 401);
});

await check('a cookie from before the sign-in is refused afterwards', async (reader) => {
  const page = await reader();
  await follow(page, await linkOf('letter'));
  const [before] = await page.context().cookies();
  await signIn(page, pathOf('ann', 'secret'), TOKENS.ann);
  const [after] = await page.context().cookies();
  assert.notEqual(before.value, after.value);
  const kept = { headers: { cookie: `${before.name}=${before.value}` } };
  assert.equal((await fetch(pathOf('ann', 'letter'), kept)).status, 401);
});

await check('forms of other origins are refused, and pages cannot be framed', async (reader) => {
  const page = await reader();
  const link = new URL(await linkOf('emoji'));
  await signIn(page, pathOf('ann', 'letter'), TOKENS.ann);
  const forms = [
    ['Out', '/records/-/sign-out', {}],
    ['In', '/records/-/sign-in', { token: TOKENS.bob, to: '/records/x:y' }],
    ['Follow', link.pathname, { link: link.searchParams.get('link') }],
  ];
  const fields = (values) => Object.entries(values).map(([name, value]) => `<input name=${name} value="${value}">`).join('');
  const html = forms.map(([name, action, values]) => `<form method=post action="${server.origin}${action}">${fields(values)}<button>${name}</button></form>`).join('');
  // Another port of the same host is the same site, so the cookie is sent.
  const elsewhere = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(`${html}<iframe src="${pathOf('ann', 'letter')}"></iframe>`));
  await once(elsewhere.listen(0, '127.0.0.1'), 'listening');
  for (const [name] of forms) {
    await page.goto(`http://localhost:${elsewhere.address().port}/`);
    const framed = page.frames().find((frame) => frame !== page.mainFrame());
    assert.equal(await framed.locator('#record').count(), 0, 'it is framed');
    page.context().complaints.length = 0; // the refused frame, and a missing icon
    await page.getByRole('button', { name }).click();
    await page.getByRole('heading', { name: 'Form refused' }).waitFor();
  }
  elsewhere.close();
  for (const origin of ['null', 'https://evil.example', `${server.origin}.evil.example`, server.origin.toUpperCase(), undefined]) {
    const answer = await page.context().request.post(`${server.origin}/records/-/sign-out`, { headers: origin ? { origin } : {} });
    assert.equal(answer.status(), 403, `${origin}`);
  }
  assert.equal((await page.goto(pathOf('ann', 'secret'))).status(), 200, 'the session goes on');
  await page.goto(link.href);
  assert.equal((await page.goto(pathOf('ann', 'emoji'))).status(), 200);
});

await check('record text runs no script, loads nothing and has no links', async (reader) => {
  const page = await reader();
  await follow(page, await linkOf('hostile'));
  await openText(page);
  assert.equal(await textOf(page), (await server.document('ann', handleOf('ann', 'hostile'))).text);
  assert.ok((await textOf(page)).includes(HOSTILE));
  await follow(page, await linkOf('script'));
  await openText(page);
  assert.match(await textOf(page), /javascript:window\.x=1/);
  await pause(300);
  for (const tag of ['main script', 'img', 'svg', 'iframe', 'base', 'a[href^="javascript" i]', 'meta[http-equiv]', '#record *']) {
    assert.equal(await page.locator(tag).count(), 0, tag);
  }
  assert.equal(await page.evaluate(() => window.x), undefined);
  assert.ok(page.url().startsWith(server.origin));
});

await check('text in every script is shown in its direction', async (reader) => {
  const page = await reader();
  for (const id of ['rightToLeft', 'emoji', 'leading']) {
    await follow(page, await linkOf(id));
    await openText(page);
    assert.equal(await textOf(page), (await server.document('ann', handleOf('ann', id))).text, id);
    if (RECORDS[id].subject) assert.equal(await title(page), RECORDS[id].subject);
  }
  await page.goto(`${pathOf('ann', 'rightToLeft')}?view=text`);
  assert.equal(await page.locator('h1').evaluate((element) => getComputedStyle(element).direction), 'rtl');
  assert.equal(await page.locator('#record').evaluate((element) => getComputedStyle(element).unicodeBidi), 'plaintext');
});

await check('records are found by ids with any characters', async (reader) => {
  const page = await reader();
  for (const id of ODD_IDS) {
    const link = await linkOf(id);
    await follow(page, link);
    assert.equal((await textOf(page)).trim(), `The id is ${id}`);
    assert.equal(page.url(), link.split('?link=')[0], id);
    await page.reload();
    assert.equal((await textOf(page)).trim(), `The id is ${id}`);
  }
});

await check('a long text is read in parts to its end', async (reader) => {
  const page = await reader();
  const { url, texts } = await server.document('ann', handleOf('ann', 'long'));
  assert.ok(texts.length > 2);
  await follow(page, url);
  await openText(page);
  const read = [await textOf(page)];
  while (await page.getByRole('link', { name: 'Next part' }).count()) {
    assert.ok(read.length < texts.length, 'there is no end');
    await page.getByRole('link', { name: 'Next part' }).click();
    await page.waitForURL(new RegExp(`/p${read.length}$`));
    read.push(await textOf(page));
  }
  texts.forEach((text, part) => assert.ok(read[part] === text, `part ${part} is another text`));
  assert.ok(texts.join('') === LONG, 'the parts are not the text');
});

await check('a record with a URL elsewhere links to it', async (reader) => {
  const page = await reader();
  assert.equal(await linkOf('own'), RECORDS.own.url);
  await signIn(page, pathOf('ann', 'own'), TOKENS.ann);
  const link = page.getByRole('link', { name: 'Open it where it is from' });
  assert.equal(await link.getAttribute('href'), RECORDS.own.url);
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
});

await check('pages are readable in light and dark mode, and on a telephone', async (reader) => {
  const page = await reader();
  const papers = new Set();
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 900, height: 900 });
    await page.goto(await linkOf('letter'));
    await assertReadable(page, ['h1', 'p', 'button']);
    await picture(page, `${colorScheme}-link`);
    await page.getByRole('button').click();
    await page.locator('#record').waitFor();
    papers.add(await assertReadable(page, ['h1', 'bdi', 'pre', 'button']));
    await picture(page, colorScheme);
    await page.goto(pathOf('ann', 'secret'));
    await assertReadable(page, ['h1', 'p', 'label', 'input', 'button']);
    await picture(page, `${colorScheme}-sign-in`);
    await follow(page, await linkOf('long'));
    await assertReadable(page, ['a']);
    await page.setViewportSize({ width: 320, height: 640 });
    for (const id of ['wide', 'hostile', 'rightToLeft']) await follow(page, await linkOf(id));
    for (const id of ['letter', 'long', 'wide', 'hostile', 'rightToLeft', 'secret']) {
      await page.goto(pathOf('ann', id));
      await assertNoSidewaysScroll(page, id);
      await picture(page, `${colorScheme}-${id}-narrow`);
    }
    await page.context().clearCookies();
  }
  assert.deepEqual([...papers].length, 2, `${[...papers]}`);
});

await check('pages are labelled, and axe finds no violation', async (reader) => {
  // The page's own policy keeps axe from running.
  const page = await reader({ bypassCSP: true });
  await page.goto(await linkOf('letter'));
  await assertNamed(page, 'Open this record');
  await assertAccessible(page, 'the link');
  await page.getByRole('button').click();
  await page.locator('#record').waitFor();
  for (const id of ['letter', 'rightToLeft', 'long']) {
    if (id !== 'letter') await follow(page, await linkOf(id));
    await assertNamed(page, RECORDS[id].subject ?? (await title(page)));
    await assertAccessible(page, id);
  }
  await page.goto(pathOf('ann', 'secret'));
  await assertNamed(page, 'Sign in');
  await assertAccessible(page, 'signing in');
  await signIn(page, pathOf('ann', 'own'), TOKENS.ann);
  await assertAccessible(page, 'a page elsewhere');
  await page.goto(pathOf('ann', 'nowhere'));
  await assertAccessible(page, 'no record');
});

await check('a session ends with its token', async (reader) => {
  const [ann, bob] = [await reader(), await reader()];
  await signIn(ann, pathOf('ann', 'letter'), TOKENS.ann);
  await signIn(bob, pathOf('bob', 'secret'), TOKENS.bob);
  server.letInOnly(['ann']);
  for (let tries = 0; (await bob.reload()).status() !== 401; tries += 1) assert.ok(await pause(50, tries < 200), 'it goes on');
  await isSignIn(bob);
  assert.equal((await ann.reload()).status(), 200);
});

await check('a server without authentication shows its pages to local users', async (reader) => {
  const page = await reader();
  const { url } = await open.document(null, handleOf('ann', 'letter'));
  assert.equal(url, pathOf('ann', 'letter').replace(server.origin, open.origin));
  assert.equal((await page.goto(url)).status(), 200);
  assert.equal(await title(page), RECORDS.letter.subject);
  assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
  assert.equal((await page.goto(`${url}x`)).status(), 404);
});

const signInPath = (who, id) => pathOf(who, id).replace(server.origin, signInServer.origin);

await check('a person signs in at another site and comes back to the record', async (reader) => {
  const page = await reader();
  // The citation is on a page of another site.
  await page.goto(`${authority.origin}/authorize`);
  await page.evaluate((url) => (location.href = url), signInPath('ann', 'letter'));
  await page.getByRole('link', { name: 'agree' }).click();
  await page.locator('#record').waitFor();
  assert.equal(await title(page), RECORDS.letter.subject);
  const names = (await page.context().cookies()).map(({ name }) => name);
  assert.deepEqual(names, ['fetchwell_session']);
  assert.equal((await page.goto(signInPath('ann', 'secret'))).status(), 200);
  assert.equal((await page.goto(signInPath('bob', 'secret'))).status(), 404);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('This browser no longer shows records').waitFor();
  await page.goto(signInPath('ann', 'letter'));
  await page.getByRole('link', { name: 'agree' }).waitFor();
});

await check('two tabs sign in at the same time', async (reader) => {
  const one = await reader();
  const other = await one.context().newPage();
  await one.goto(signInPath('ann', 'letter'));
  await other.goto(signInPath('ann', 'secret'));
  for (const [page, subject] of [[one, RECORDS.letter.subject], [other, 'Only for ann']]) {
    await page.getByRole('link', { name: 'agree' }).click();
    await page.locator('#record').waitFor();
    assert.equal(await title(page), subject);
  }
});

await check('a person who declines gets an error, and can start again', async (reader) => {
  const page = await reader();
  await page.goto(signInPath('ann', 'letter'));
  await page.getByRole('link', { name: 'decline' }).click();
  assert.equal(await title(page), 'You are not signed in');
  await picture(page, 'declined');
  await assertAccessible(page, 'declined');
  await page.getByRole('link', { name: 'Sign in again' }).click();
  await page.getByRole('link', { name: 'agree' }).click();
  assert.equal(await title(page), RECORDS.letter.subject);
});

await check('no token is in a log', async () => {
  for (const { log } of [server, open, signInServer]) assert.doesNotMatch(log(), /fwt_|link=/);
});

await browser.close();
server.stop();
open.stop();
signInServer.stop();
authority.stop();
finish('record pages');
