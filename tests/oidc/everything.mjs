// Usage: everything.mjs BINARY FOLDER
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { callerSignIns } from './caller_sign_ins.mjs';
import { introspectedTokens } from './introspected_tokens.mjs';
import { liveChanges } from './live_changes.mjs';
import { passedOn } from './passed_on.mjs';
import { stopAll } from './processes.mjs';
import { check, heading, verdict } from './report.mjs';
import { sdkClient } from './sdk_client.mjs';
import { seenTokens } from './sign_in.mjs';
import { signedInPages } from './signed_in_pages.mjs';
import { signedTokens } from './signed_tokens.mjs';
import { sourceLogin } from './source_login.mjs';

const [binary, folder] = process.argv.slice(2);
const log = (name) => readFileSync(join(folder, name), 'utf8');

/** Creates the stores of alice and bob. */
function makeStores() {
  execFileSync(binary, ['demo', '--store', join(folder, 'mail.db')], { stdio: 'ignore' });
  const rows = Array.from({ length: 30 }, (_, at) => `${at + 1},"Order ${at + 1} with its invoice",${at * 7}`);
  writeFileSync(join(folder, 'orders.csv'), ['id,subject,amount', ...rows, ''].join('\n'));
  const store = ['--store', join(folder, 'orders.db'), '--connection', 'shop', '--name', 'Shop'];
  execFileSync(binary, ['import', 'csv', join(folder, 'orders.csv'), ...store, '--stream', 'orders', '--key', 'id'], {
    stdio: 'ignore',
  });
}

function nothingIsKept() {
  return check(`no log and no file has any of the ${seenTokens.size} tokens and secrets that were seen`, () => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const ours = files.filter((entry) => entry.name !== 'authorization_server.log');
    assert.ok(ours.some((entry) => entry.name === 'telemetry.db') && ours.some((entry) => entry.name === 'cursors.db'));
    assert.ok(ours.some((entry) => entry.name.endsWith('.log') && log(entry.name).includes('tool:search')));
    for (const entry of ours) {
      const bytes = readFileSync(join(entry.parentPath, entry.name));
      for (const token of seenTokens) {
        // The signature is the part of a JWT that identifies it.
        const telling = token.split('.').at(-1);
        assert.ok(telling.length >= 16 && !bytes.includes(telling), `${entry.name} has a token`);
      }
    }
  });
}

let code = 1;
try {
  makeStores();
  await signedTokens(binary, folder);
  await introspectedTokens(binary, folder);
  await liveChanges(binary, folder);
  await passedOn(binary, folder);
  await signedInPages(binary, folder);
  await sdkClient(binary, folder);
  await sourceLogin(binary, folder);
  await callerSignIns(binary, folder);
  heading('afterwards');
  await nothingIsKept();
  code = verdict();
} catch (error) {
  console.error(error);
} finally {
  await stopAll();
  if (code !== 0) {
    for (const name of readdirSync(folder).filter((name) => name.endsWith('.log'))) {
      console.error(`\n== the end of ${name}\n${log(name).split('\n').slice(-25).join('\n')}`);
    }
  }
}
process.exit(code);
