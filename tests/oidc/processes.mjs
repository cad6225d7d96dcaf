// Child processes that are always stopped.
import { execFile, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createServer } from 'node:net';

const running = new Set();

/** Returns an unused port. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Starts a program that logs to a file, and waits until it answers at `url`. */
export async function start(program, args, { url, log, environment = {} }) {
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  const file = createWriteStream(log, { flags: 'a' });
  child.stdout.pipe(file, { end: false });
  child.stderr.pipe(file, { end: false });
  let ended = false;
  const end = new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      ended = true;
      running.delete(stop);
      resolve({ code, signal });
    });
  });
  const stop = async () => {
    child.kill('SIGTERM');
    return end;
  };
  running.add(stop);
  for (let tries = 0; tries < 300; tries += 1) {
    if (ended) throw new Error(`${program} ended; see ${log}`);
    const answered = await fetch(url).then(
      () => true,
      () => false,
    );
    if (answered) return { stop };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${program} does not answer at ${url}; see ${log}`);
}

/** Runs a program to its end, with an exit code of -1 if it ends by a signal or within no minute. */
export const runToEnd = (program, args) =>
  new Promise((resolve) => {
    const child = execFile(program, args, { timeout: 60_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });

export const stopAll = () => Promise.all([...running].map((stop) => stop()));
