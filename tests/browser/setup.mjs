// The page of `fetchwell setup --page` over a home folder with hostile names. Usage: setup.mjs BINARY FOLDER
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { chromium } from 'playwright-core';

import { checksIn } from './checks.mjs';
import { assertAccessible, assertNamed, assertNoSidewaysScroll, assertReadable } from './look.mjs';

const [binary, folder] = process.argv.slice(2);
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

const HOSTILE = 'Notes <img src=x onerror=window.x=1> & "more" \u202egnp';
const CURSOR = '{\n  // mine\n  "mcpServers": {\n    "other": { "command": "<script>window.x=1</script>", "env": { "TOKEN": "s3cret" } }\n  }\n}\n';
const MAIL = 'From a@x.test Wed Apr  1 10:00:00 2026\nMessage-ID: <m1@x.test>\nFrom: a@x.test\nSubject: Hello\n\nThe walrus.\n';

/** Creates a home folder with mail, notes and two clients. */
function newHome(name) {
  const home = join(folder, name);
  const write = (path, text) => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  };
  write(`${HOSTILE}/.obsidian/app.json`, '{}');
  write(`${HOSTILE}/note.md`, '# Note\n\nThe ferry leaves at noon.\n');
  write('.thunderbird/x.default/ImapMail/imap.x.test/INBOX', MAIL);
  write('.cursor/mcp.json', CURSOR);
  write('.codex/config.toml', 'not toml [\n');
  return home;
}

/** Starts the command, and returns the URL of its page. */
async function start(home) {
  const env = { PATH: process.env.PATH, HOME: home };
  const child = spawn(binary, ['setup', '--page'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface({ input: child.stderr })) {
    const url = line.match(/http:\/\/localhost:\S+/)?.[0];
    if (!url) continue;
    child.stderr.resume();
    return { url, stop: () => child.kill() };
  }
  throw new Error('the command printed no address');
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });
const { check, finish } = checksIn(browser);
const picture = async (page, name) => {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`), fullPage: true });
};

for (const javaScriptEnabled of [true, false]) {
  const name = `scripts ${javaScriptEnabled ? 'on' : 'off'}`;
  await check(`a person sets up a machine with the keyboard, ${name}`, async (reader) => {
    const home = newHome(javaScriptEnabled ? 'with' : 'without');
    const setup = await start(home);
    try {
      const page = await reader({ javaScriptEnabled });
      const answer = await page.goto(setup.url);
      assert.equal(answer.status(), 200);
      assert.ok((await answer.body()).length < 60 * 1024);
      assert.ok(!(await answer.text()).includes('s3cret'));
      if (javaScriptEnabled) {
        await assertNamed(page, 'Set up fetchwell');
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          for (const width of [320, 768, 1280]) {
            await page.setViewportSize({ width, height: 900 });
            await assertReadable(page, ['h1', 'label', 'button']);
            await assertNoSidewaysScroll(page, `set-up at ${width}`);
            await picture(page, `setup-${width}-${colorScheme}`);
          }
        }
        assert.equal(await page.evaluate(() => window.x), undefined);
        for (const tag of ['main script', 'img', 'main style']) assert.equal(await page.locator(tag).count(), 0, tag);
      }
      await page.getByText('is left as it is').waitFor();
      // Only mail is left out.
      await page.getByRole('checkbox', { name: /imap-x-test/ }).focus();
      await page.keyboard.press('Space');
      await page.getByRole('button', { name: 'Import and change what is chosen' }).focus();
      await page.keyboard.press('Enter');
      for (let tries = 0; tries < 100 && !(await page.getByText('Restart Cursor').count()); tries += 1) {
        await page.waitForTimeout(100);
        if (await page.getByRole('link', { name: 'Look now' }).count()) await page.getByRole('link', { name: 'Look now' }).click();
      }
      await page.getByText(/: 1 added/).waitFor();
      assert.ok(readFileSync(join(home, '.cursor/mcp.json'), 'utf8').includes('"fetchwell"'));
      assert.equal(readFileSync(join(home, '.cursor/mcp.json.fetchwell-backup'), 'utf8'), CURSOR);
      assert.ok(existsSync(join(home, '.local/share/fetchwell/store.db')));
      await page.getByRole('link', { name: 'Look for more' }).click();
      await page.getByText('has fetchwell already').waitFor();
      await page.getByRole('checkbox', { name: /imap-x-test/ }).waitFor();
      // The back button does nothing twice.
      await page.goBack();
      await page.waitForLoadState();
      assert.equal(existsSync(join(home, '.cursor/mcp.json.fetchwell-backup-2')), false);
    } finally {
      setup.stop();
    }
  });
}

await check('axe finds no violation on the set-up page', async (reader) => {
  const setup = await start(newHome('axe'));
  try {
    const page = await reader({ bypassCSP: true });
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.goto(setup.url);
      await assertAccessible(page, `set-up, ${colorScheme}`);
    }
    await page.goto(setup.url.replace(/key=.*/, 'key=wrong'));
    await page.getByRole('heading', { name: 'This page needs its key' }).waitFor();
    await assertAccessible(page, 'set-up without the key');
  } finally {
    setup.stop();
  }
});

await check('a form of another site does nothing', async (reader) => {
  const home = newHome('foreign');
  const setup = await start(home);
  try {
    const page = await reader();
    const key = new URL(setup.url).searchParams.get('key');
    // The page of another port is another origin.
    const other = await start(newHome('other'));
    await page.goto(other.url);
    const status = await page.evaluate(async ({ url, body }) => {
      try {
        return (await fetch(url, { method: 'POST', mode: 'no-cors', body: new URLSearchParams(body) })).status;
      } catch {
        return 'blocked';
      }
    }, { url: setup.url, body: { key, client: 'Cursor' } });
    other.stop();
    assert.ok(status === 'blocked' || status === 0, String(status));
    assert.equal(readFileSync(join(home, '.cursor/mcp.json'), 'utf8'), CURSOR);
    page.context().complaints.length = 0;
  } finally {
    setup.stop();
  }
});

await browser.close();
finish('the set-up page');
