// The search page, records, sources, projects and answers of tools, as people and attackers use them. Usage: web.mjs BINARY FOLDER
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

import { checksIn } from './checks.mjs';
import { HOSTILE_RECORDS, READABLE_RECORDS, recordsOf } from './corpus.mjs';
import { HOSTILE } from './records.mjs';
import { assertAccessible, assertNoSidewaysScroll, assertReadable } from './look.mjs';
import { ADMIN, OPERATOR, TOKENS, hashOf, importRecords, importStore, run, sourceOf, start } from './server.mjs';

const [binary, folder] = process.argv.slice(2);
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

importRecords(binary, folder);
importStore(binary, folder, 'hostile', 'cin_hostile', recordsOf('records', HOSTILE_RECORDS));
importStore(binary, folder, 'readable', 'cin_readable', recordsOf('records', READABLE_RECORDS));
mkdirSync(join(folder, 'handbook'));
for (let number = 0; number < 3; number += 1) {
  const text = Array.from({ length: 40 }, (_, part) => `## Part ${part}\n\n${`Holidays and rules of part ${part}. `.repeat(20)}\n\n`).join('');
  writeFileSync(join(folder, 'handbook', `page${number}.md`), `# Page ${number}\n\n${text}`);
}
run(binary, folder, 'project', 'create', 'handbook', '--name', 'Team handbook', '--store', join(folder, 'docs.db'));
run(binary, folder, 'import', 'docs', join(folder, 'handbook'), '--project', 'handbook', '--store', join(folder, 'docs.db'));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
const more = ['hostile', 'readable', 'docs'].map(sourceOf).join('');
const open = await start(binary, folder, undefined, undefined, more);
const hosted = await start(binary, folder, ['ann', 'bob'], undefined, ADMIN);
const { check, finish } = checksIn(browser);

const recordPath = (key, connection = 'cin_readable') => `/records/${connection}/records:${key}`;
const picture = async (page, name) => {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`), fullPage: true });
};

/** Returns the paths of all kinds of pages. */
async function allPages(page) {
  await page.goto(`${open.origin}/projects/handbook`);
  const chunks = await page.getByRole('link', { name: 'Chunks' }).first().getAttribute('href');
  const document = await page.locator('th a').first().getAttribute('href');
  const records = Object.keys(READABLE_RECORDS).map((key) => [`record-${key}`, recordPath(key)]);
  return [
    ['start', '/'],
    ['results', '/?q=roof+text+holidays'],
    ['browse', '/?account=cin_readable'],
    ['nothing', '/?q=zzzzqqqq&account=cin_readable&time=24h'],
    ['failure', '/?q=roof&account=nowhere'],
    ...records,
    ['record-text', `${recordPath('mail')}?view=text`],
    ['record-page', `${recordPath('book')}?page=2`],
    ['record-part', `${recordPath('book').replace('/records:', '/records/')}/p1`],
    ['missing', recordPath('nothing')],
    ['sources', '/sources'],
    ['projects', '/projects'],
    ['documents', '/projects/handbook'],
    ['document', document],
    ['chunks', chunks],
    ['no-project', '/projects/nowhere'],
    ['model', '/model'],
    ['model-search', '/model?tool=search&value=roof&limit=10'],
    ['model-fetch', `/model?tool=fetch&value=${encodeURIComponent('cin_readable/records:mail')}`],
    ['model-error', '/model?tool=fetch&value=x'],
    ['operator', '/operator'],
    ['operator-day', '/operator?window=1d'],
  ];
}

/** Opens what the page of the operator folds. */
async function openDetails(page) {
  if (!new URL(page.url()).pathname.startsWith('/operator')) return;
  await page.locator('details').evaluateAll((all) => all.forEach((details) => (details.open = true)));
}

await check('every page is readable at three widths, in light and dark mode, with and without scripts', async (reader) => {
  for (const javaScriptEnabled of [true, false]) {
    // Without scripts, the browser is not asked for its colors: the checks are scripts.
    const page = await reader({ javaScriptEnabled });
    for (const colorScheme of javaScriptEnabled ? ['light', 'dark'] : ['light']) {
      await page.emulateMedia({ colorScheme });
      for (const [name, path] of await allPages(page)) {
        const answer = await page.goto(open.origin + path);
        assert.ok(answer.status() < 500, `${name}: ${answer.status()}`);
        assert.ok((await answer.body()).length < 800_000, `${name} is too large`);
        await page.getByRole('heading', { level: 1 }).waitFor({ state: 'attached' });
        if (!javaScriptEnabled) continue;
        await openDetails(page);
        for (const width of [320, 768, 1280]) {
          await page.setViewportSize({ width, height: 900 });
          await assertReadable(page, []);
          await assertNoSidewaysScroll(page, `${name} at ${width}`);
          await picture(page, `${name}-${width}-${colorScheme}`);
        }
      }
    }
  }
});

await check('axe finds no violation on any page', async (reader) => {
  // The policy of the pages keeps axe from running.
  const page = await reader({ bypassCSP: true });
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [name, path] of await allPages(page)) {
      await page.goto(open.origin + path);
      await openDetails(page);
      await assertAccessible(page, `${name}, ${colorScheme}`);
    }
  }
});

await check('the start page is small and warns that others can open it', async (reader) => {
  const page = await reader();
  const answer = await page.goto(`${open.origin}/`);
  assert.ok((await answer.body()).length <= 60 * 1024);
  await page.getByText('Every user and program of this machine can open this page.').waitFor();
  await page.getByText('fetchwell token new').waitFor();
});

for (const javaScriptEnabled of [true, false]) {
  await check(`a person searches, narrows and reads with the keyboard, scripts ${javaScriptEnabled ? 'on' : 'off'}`, async (reader) => {
    const page = await reader({ javaScriptEnabled });
    await page.goto(`${open.origin}/`);
    await page.getByLabel('Words to search for').focus();
    await page.keyboard.type('roof repair');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Roof repair', exact: true }).waitFor();
    assert.ok((await page.locator('mark').allTextContents()).some((text) => /roof/i.test(text)));
    await page.getByLabel('Account').selectOption('cin_hostile');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/account=cin_hostile/);
    assert.equal(await page.getByRole('link', { name: 'Roof repair', exact: true }).count(), 0);
    await page.goBack();
    await page.getByRole('link', { name: 'Roof repair', exact: true }).click();
    await page.getByRole('heading', { name: 'Conversation' }).waitFor();
    const elsewhere = page.locator('#record a');
    assert.equal(await elsewhere.getAttribute('href'), 'https://roofs.example.com/offers/7731?a=1&b=2');
    await page.getByRole('link', { name: 'Re: Roof repair' }).click();
    await page.getByText('Thank you, that suits me.').waitFor();
    await page.getByRole('link', { name: 'What the model sees' }).last().click();
    const shown = JSON.parse(await page.locator('#payload').textContent());
    assert.equal(shown.id, 'cin_readable/records:reply');
    assert.equal(await page.locator('#payload').textContent(), JSON.stringify(await open.call(null, 'fetch', { id: shown.id })));
  });
}

await check('hostile records run no script, load nothing, and stay inside of their page', async (reader) => {
  const page = await reader();
  for (const key of Object.keys(HOSTILE_RECORDS)) {
    for (const query of ['', '?view=text', '?page=3']) {
      const answer = await page.goto(`${open.origin}${recordPath(key, 'cin_hostile')}${query}`);
      assert.equal(answer.status(), 200, `${key}${query}`);
      assert.ok((await answer.body()).length < 1_500_000, `${key}${query} has ${(await answer.body()).length} bytes`);
      assert.equal(await page.evaluate(() => window.x), undefined, key);
      for (const tag of ['main script', 'main style', 'img', 'svg', 'iframe', 'base', 'link', 'form[action^="https"]', 'main [onclick]', 'meta[http-equiv]']) {
        assert.equal(await page.locator(tag).count(), 0, `${key}: ${tag}`);
      }
      const targets = await page.locator('a').evaluateAll((links) => links.map((link) => new URL(link.href).protocol));
      assert.deepEqual(targets.filter((protocol) => !['http:', 'https:'].includes(protocol)), [], key);
      await page.setViewportSize({ width: 320, height: 640 });
      await assertNoSidewaysScroll(page, key);
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Search' }).waitFor();
    }
    await picture(page, `hostile-${key}`);
  }
  for (const path of ['/?account=cin_hostile', '/?q=invoice+text+click', '/?q=%3Cscript%3Ewindow.x%3D1%3C/script%3E&stream=%22onfocus%3Dx', '/model?tool=search&value=click', '/sources']) {
    await page.goto(open.origin + path);
    assert.equal(await page.evaluate(() => window.x), undefined, path);
    await assertNoSidewaysScroll(page, path);
  }
  await picture(page, 'hostile-results');
});

await check('the pages of a long text are the whole text', async (reader) => {
  const page = await reader();
  let read = '';
  await page.goto(open.origin + recordPath('book'));
  for (let pages = 0; pages < 20; pages += 1) {
    read += await page.locator('#record').evaluate((element) => element.textContent);
    const next = page.getByRole('link', { name: 'Next page' });
    if (!(await next.count())) break;
    await next.click();
  }
  assert.ok(read === READABLE_RECORDS.book.body, `${read.length} of ${READABLE_RECORDS.book.body.length} characters`);
});

await check('a handle is copied with a button', async (reader) => {
  const page = await reader();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: open.origin });
  await page.goto(open.origin + recordPath('mail'));
  await page.getByRole('button', { name: 'Copy handle' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'cin_readable/records:mail');
});

await check('the page of the operator has nothing of calls, records and secrets', async (reader) => {
  for (const path of ['/mcp', `/v1/streams/${encodeURIComponent(HOSTILE)}/records`, `/${encodeURIComponent(HOSTILE)}`]) {
    await fetch(open.origin + path, { headers: { 'x-request-id': '<script>', 'user-agent': '<script>window.x=1</script>' } });
  }
  await open.call(null, 'search', { query: HOSTILE });
  await open.call(null, 'fetch', { id: `cin_hostile/records:${HOSTILE}` });
  await open.call(null, 'fetch', { id: 'cin_hostile/records:script' });
  await open.call(null, 'fetch', { id: 'cin_hostile/records:none' });
  for (const javaScriptEnabled of [true, false]) {
    const page = await reader({ javaScriptEnabled });
    const answer = await page.goto(`${open.origin}/operator`);
    const html = await answer.text();
    assert.ok(html.includes('tool:search') && html.includes('numbers are of this process'), html.slice(0, 500));
    assert.ok(html.includes('Configuration') && html.includes('source[0].store') && html.includes('<code>not_found</code>'));
    for (const text of ['window.x', 'evil.example', 'onerror', 'cin_hostile', 'javascript:']) assert.ok(!html.includes(text), text);
    if (!javaScriptEnabled) continue;
    assert.equal(await page.evaluate(() => window.x), undefined);
    for (const tag of ['main script', 'main style', 'main iframe', 'main [onclick]', 'main [style]']) {
      assert.equal(await page.locator(tag).count(), 0, tag);
    }
    await page.getByText(/Its \d+ keys, without secrets/).click();
    await page.getByRole('rowheader', { name: 'public_url' }).waitFor();
  }
});

/** Signs in at a page with a token. */
async function signIn(page, path, token) {
  await page.goto(hosted.origin + path);
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

await check('each person finds only their own records', async (reader) => {
  const [ann, bob, stranger] = [await reader(), await reader(), await reader()];
  await signIn(ann, '/?q=only', TOKENS.ann);
  await signIn(bob, '/?q=only', TOKENS.bob);
  for (const [page, own, other] of [[ann, 'ann', 'bob'], [bob, 'bob', 'ann']]) {
    const foreign = [`/records/cin_${other}/notes:secret`, `/records/cin_${other}/notes:secret?view=text`, `/model?tool=fetch&value=cin_${other}/notes:secret`];
    const paths = ['/?q=only', '/', '/?account=cin_ann', '/?account=cin_bob', '/sources', '/projects', '/projects/handbook', '/model', '/model?tool=search&value=only', '/operator', '/operator?window=1d'];
    for (const path of [...paths, ...foreign]) {
      const answer = await page.goto(hosted.origin + path);
      const html = await page.locator('main').evaluate((element) => element.innerHTML);
      assert.ok(!html.includes(`Only for ${other}`), `${own} at ${path}`);
      assert.ok(path.includes(other) || !html.includes(`cin_${other}`), `${own} at ${path}`);
      if (path.startsWith('/operator')) assert.ok(answer.status() === 403 && !html.includes('tool:'), path);
      if (path === '/sources') assert.ok(html.includes(`cin_${own}`) && !html.includes(`cin_${other}`), path);
    }
    await page.goto(`${hosted.origin}/?q=only`);
    await page.getByRole('link', { name: `Only for ${own}` }).waitFor();
  }
  for (const path of ['/?q=only', '/sources', '/projects', '/model', '/projects/handbook', '/operator']) {
    assert.equal((await stranger.goto(hosted.origin + path)).status(), 401, path);
    assert.doesNotMatch(await stranger.content(), /cin_/);
  }
});

await check('the operator of a hosted server sees numbers and no secret', async (reader) => {
  const page = await reader({ bypassCSP: true });
  await hosted.call('bob', 'search', { query: 'only' });
  await signIn(page, '/', OPERATOR);
  await page.getByRole('link', { name: 'Operator' }).click();
  await page.getByText('tool:search').first().waitFor();
  await openDetails(page);
  await page.getByRole('rowheader', { name: 'auth.token[0].sha256' }).waitFor();
  const html = await page.content();
  for (const token of [...Object.values(TOKENS), OPERATOR]) {
    assert.ok(!html.includes(token) && !html.includes(hashOf(token)), 'a token or its hash is on the page');
  }
  for (const text of ['Only for', 'cin_bob', 'cin_ann']) assert.ok(!html.includes(text), text);
  await assertAccessible(page, 'operator of a hosted server');
});

await check('after the session ends in another tab, a search leads to the sign-in and back', async (reader) => {
  const page = await reader();
  await signIn(page, '/?q=only', TOKENS.ann);
  const other = await page.context().newPage();
  await other.goto(`${hosted.origin}/sources`);
  await other.getByRole('button', { name: 'Sign out' }).click();
  await other.getByText('This browser no longer shows records').waitFor();
  await page.getByLabel('Words to search for').fill('gutter north');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('heading', { name: 'This page is not public' }).waitFor();
  await page.getByLabel('Access token').fill(TOKENS.ann);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'Offer for the gutter on the north side' }).waitFor();
  // The back button shows nothing of an ended session.
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('This browser no longer shows records').waitFor();
  await page.goBack();
  await page.waitForLoadState();
  assert.equal(await page.getByRole('link', { name: 'Offer for the gutter on the north side' }).count(), 0);
});

await check('no query and no record is in a log', async () => {
  for (const { log } of [open, hosted]) assert.doesNotMatch(log(), /fwt_|gutter|roof|Only for/i);
});

await browser.close();
open.stop();
hosted.stop();
finish('the web pages');
