// Hostile records, and readable ones of every kind, for the pages of the web interface.
import { HOSTILE } from './records.mjs';

const ZALGO = [...'Zalgo text'].map((letter) => letter + '\u0300\u0301\u0316\u0317\u0332'.repeat(200)).join('');
const BIDI = 'invoice \u202egpj.exe \u2066isolated \u2067and back\u202a\u202b never closed';
const STYLE = '</style><style>*{display:none!important}</style><link rel=stylesheet href=https://evil.example/x.css>';
const LINKS = `[a](javascript:window.x=1) [b](data:text/html,<script>window.x=1</script>) <javascript:window.x=1>
![i](https://evil.example/i.png) ![j](data:image/svg+xml,<svg onload=window.x=1>) [c](https://evil.example/?a=1&b=2)
<img src=https://evil.example/pixel.png> <script>window.x=1</script>\n\n# Heading <b onclick=window.x=1>x</b>\n`;
const MARKDOWN = `# Release notes\n\nSome *text* with \`code\` and a [link](https://docs.example.com/a).\n\n## Changes\n\n- one\n- two\n\n| name | value |\n|---|--:|\n| a | 1 |\n| b | 2 |\n\n\`\`\`js\nconst x = "<b>";\n\`\`\`\n\n> A quote.\n`;

const bytes = 10 * 1024 * 1024;
const numbers = (count, of) => Array.from({ length: count }, (_, number) => of(number));

/** Records that must not harm a page, by their key. */
export const HOSTILE_RECORDS = {
  script: { subject: HOSTILE, from: HOSTILE, body: HOSTILE, nested: { [HOSTILE]: [HOSTILE, { [HOSTILE]: HOSTILE }] } },
  html: { subject: 'HTML mail', html: `<html><body onload=window.x=1><p>Visible</p>${HOSTILE}</body></html>` },
  style: { subject: STYLE, body: STYLE },
  bidi: { subject: BIDI, body: `${BIDI}\n${BIDI}`, [`field ${BIDI}`]: BIDI },
  zalgo: { subject: ZALGO, body: `${ZALGO}\n${ZALGO}` },
  links: { subject: 'Links', path: 'a/links.md', body: LINKS },
  long: { subject: 'Ten megabytes', body: 'A line of a long text with words.\n'.repeat(bytes / 34) },
  unbroken: { subject: 'w'.repeat(4000), body: 'unbroken'.repeat(5000) },
  fields: { subject: 'Many fields', ...Object.fromEntries(numbers(10_000, (number) => [`field_${number}`, `value ${number}`])) },
  table: { subject: 'Huge table', rows: numbers(5000, (number) => ({ number, text: `row ${number} ${'x'.repeat(50)}`, html: '<b>x</b>' })) },
  columns: { subject: 'Huge Markdown table', path: 't.md', body: `${'|a'.repeat(2000)}|\n${'|-'.repeat(2000)}|\n${'|x\n'.repeat(3000)}` },
  deep: { subject: 'Deep value', value: numbers(40, () => 0).reduce((inner) => ({ a: [inner] }), 1) },
  quotes: { subject: 'Deep quotes', path: 'q.md', body: `${'> '.repeat(3000)}x\n\n${'- '.repeat(3000)}y` },
};

/** Readable records of every kind, by their key. */
export const READABLE_RECORDS = {
  mail: { subject: 'Roof repair', from: 'Marta Lindqvist <marta@roofs.example.com>', to: 'ann@example.com', date: '2026-10-01T09:00:00Z', message_id: 'm1@x', thread_id: 't1', labels: ['house'], body: 'Dear Ann,\n\nplease see https://roofs.example.com/offers/7731?a=1&b=2.\n\n> earlier text\n> more of it\n\nMarta' },
  reply: { subject: 'Re: Roof repair', from: 'Ann <ann@example.com>', to: 'marta@roofs.example.com', date: '2026-10-02T09:00:00Z', message_id: 'm2@x', thread_id: 't1', body: 'Thank you, that suits me.' },
  later: { subject: 'Gutter', from: 'Bob <bob@example.com>', date: '2026-10-05T09:00:00Z', thread_id: 't2', body: 'Another matter.' },
  markdown: { title: 'Release notes', path: 'notes/release.md', date: '2026-10-06T09:00:00Z', body: MARKDOWN },
  code: { title: 'main.rs', path: 'src/main.rs', date: '2026-10-07T09:00:00Z', body: 'fn main() {\n    println!("<hello>");\n}\n'.repeat(3) },
  order: { title: 'Order 17', date: '2026-10-08T09:00:00Z', total: 12.5, items: [{ sku: 'a1', count: 2, price: 5 }, { sku: 'b2', count: 1, price: 2.5 }], customer: { name: 'Ann', address: { city: 'Graz', tags: ['home', 'billing'] } } },
  book: { title: 'A long text', date: '2026-10-09T09:00:00Z', body: numbers(4000, (line) => `Line ${line} of a long text.\n\n`).join('') },
};

export const recordsOf = (stream, records) => Object.entries(records).map(([key, data]) => ({ stream, key, data }));
