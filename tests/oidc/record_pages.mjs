// The link that `fetch` gives, opened by a person in a browser, as long as its grant is valid.
import assert from 'node:assert/strict';

import { call } from './mcp.mjs';
import { check } from './report.mjs';

const page = async (url, cookie) => {
  const response = await fetch(url, { headers: cookie ? { cookie } : {}, redirect: 'manual' });
  return { status: response.status, text: await response.text() };
};

export async function recordPages(fetchwell, token, id) {
  await check('the link that `fetch` gives opens the record in a browser, any number of times', async () => {
    const { payload } = await call(fetchwell.mcp, token, 'fetch', { id });
    const link = new URL(payload.url);
    assert.ok(payload.url.startsWith(`${fetchwell.url}/records/`), payload.url);
    const bare = fetchwell.url + link.pathname;
    // A line of the record that neither the sign-in page nor the page before the record may contain.
    const telling = payload.title;

    assert.ok(!(await page(bare)).text.includes(telling));
    const before = await page(payload.url);
    assert.equal(before.status, 200);
    assert.ok(!before.text.includes(telling), 'a program that looks at the link sees the record');

    const follow = (origin) =>
      fetch(bare, {
        method: 'POST',
        headers: { origin },
        body: new URLSearchParams({ link: link.searchParams.get('link') }),
        redirect: 'manual',
      });
    assert.equal((await follow('https://elsewhere.example')).status, 403);
    const opened = await follow(fetchwell.url);
    assert.equal(opened.status, 303);
    const [cookie] = opened.headers.getSetCookie()[0].split(';');
    const record = await page(bare, cookie);
    assert.equal(record.status, 200);
    assert.ok(record.text.includes(telling), record.text);

    // The person follows the citation again, possibly in another browser.
    const [again] = (await follow(fetchwell.url)).headers.getSetCookie()[0].split(';');
    assert.ok((await page(bare, again)).text.includes(telling));
    assert.ok(!(await page(payload.url)).text.includes(telling));
  });
}
