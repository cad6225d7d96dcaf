// Results of the checks, a line each.

let failures = 0;
let checks = 0;

/** Runs one check. A failure is printed, and the next check runs. */
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

/** Prints the number of passed checks, and returns the exit code. */
export function verdict() {
  console.log(`\n${checks - failures} of ${checks} passed`);
  return failures === 0 ? 0 : 1;
}
