// Named checks, each with browser contexts of its own that record complaints.
import assert from 'node:assert/strict';

/** Returns `check`, which runs a check, and `finish`, which prints the result. Pages may request `origins` and this machine. */
export function checksIn(browser, origins = []) {
  let failed = 0;

  /** Opens a page in a new browser context, which records complaints. */
  async function newReader(options) {
    const context = await browser.newContext({ serviceWorkers: 'block', ...options });
    context.setDefaultTimeout(10_000);
    context.complaints = [];
    context.on('console', (message) => context.complaints.push(message.text()));
    context.on('weberror', (error) => context.complaints.push(String(error.error())));
    context.on('dialog', (dialog) => (context.complaints.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
    context.on('request', (request) => {
      const known = ['http://localhost:', ...origins];
      if (!known.some((origin) => request.url().startsWith(origin))) context.complaints.push(`asks for ${request.url()}`);
    });
    return context.newPage();
  }

  /** Fails if the browser complained: about a violated policy, an error or a request to another site. Chromium reports statuses other than 200 as well. */
  function assertQuiet({ complaints }) {
    assert.deepEqual(complaints.filter((text) => !/Failed to load resource: .* 4\d\d/.test(text)), []);
  }

  async function check(name, act) {
    const contexts = [];
    try {
      await act(async (options) => {
        const reader = await newReader(options);
        contexts.push(reader.context());
        return reader;
      });
      contexts.forEach(assertQuiet);
      console.log(`PASS ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${error.stack}`);
    }
    await Promise.all(contexts.map((context) => context.close()));
  }

  const finish = (what) => {
    console.log(failed ? `browser: ${failed} checks of ${what} failed` : `browser: every check of ${what} passed`);
    process.exitCode = failed ? 1 : process.exitCode;
  };
  return { check, finish };
}
