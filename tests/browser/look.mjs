// Checks of the layout, contrast and accessibility of a page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const AXE = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** The contrast that WCAG 2 requires for text of ordinary size. */
const MIN_CONTRAST = 4.5;

/** Returns the contrast of every text on the page with its background, by the colours that the browser computed. */
export function contrasts(page) {
  return page.evaluate(() => {
    const rgba = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const light = (colour) => {
      const [r, g, b] = rgba(colour).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if ((rgba(colour)[3] ?? 1) === 1) return colour;
      }
      return 'rgb(255, 255, 255)';
    };
    const says = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const shown = [...document.body.querySelectorAll('*')].filter((element) => says(element) || element.matches('input:not([type=hidden])'));
    return shown.map((element) => {
      const [ink, paper] = [getComputedStyle(element).color, behind(element)];
      const [more, less] = [light(ink), light(paper)].sort((a, b) => b - a);
      return { tag: element.localName, ink, paper, contrast: (more + 0.05) / (less + 0.05) };
    });
  });
}

/** Fails unless all text can be read, and returns the background colour of the page. */
export async function assertReadable(page, tags) {
  const found = await contrasts(page);
  for (const tag of tags) assert.ok(found.some((text) => text.tag === tag), `no <${tag}> with a text`);
  const poor = found.filter((text) => !(text.contrast >= MIN_CONTRAST));
  assert.deepEqual(poor, []);
  return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
}

/** Fails if a page is wider than its window. */
export async function assertNoSidewaysScroll(page, where) {
  const { wide, window } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, window: innerWidth }));
  assert.ok(wide <= window, `${where} is ${wide} wide in ${window}`);
}

/** Fails with the violations that axe finds. */
export async function assertAccessible(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 100)).join(' | ')}`);
  assert.deepEqual(told, [], where);
}

/** Fails unless a page has a language, a title, one heading of the first level before all others, and a name for each field. */
export async function assertNamed(page, title) {
  const found = await page.evaluate(() => ({
    lang: document.documentElement.lang,
    title: document.title,
    heading: document.querySelector('h1,h2,h3,h4,h5,h6')?.localName,
    first: document.querySelectorAll('h1').length,
    mains: document.querySelectorAll('main').length,
    unnamed: [...document.querySelectorAll('input:not([type=hidden]),select')].filter((field) => !field.labels.length).length,
    empty: [...document.querySelectorAll('a,button,nav,h1')].filter((element) => !element.textContent.trim()).length,
  }));
  assert.deepEqual(found, { lang: 'en', title, heading: 'h1', first: 1, mains: 1, unnamed: 0, empty: 0 });
}
