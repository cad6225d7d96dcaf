// What was tried, one line each.

let failures = 0;
let checks = 0;

/** Tries one thing. What goes wrong is told, and the next is tried. */
export async function check(title, attempt) {
  checks += 1;
  try {
    await attempt();
    console.log(`PASS  ${title}`);
  } catch (error) {
    failures += 1;
    const [first, ...more] = String(error.stack ?? error).split('\n');
    console.log(`FAIL  ${title}\n      ${[first, ...more.slice(0, 12)].join('\n      ')}`);
  }
}

export const heading = (text) => console.log(`\n${text}`);

/** Tells how it went, as an exit code. */
export function verdict() {
  console.log(`\n${checks - failures} of ${checks} passed`);
  return failures === 0 ? 0 : 1;
}
