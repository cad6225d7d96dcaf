// Records of the awkward servers, the same as those of corpus.py, which describes them. JavaScript reads the large number of
// special.json as 9007199254740992.
import { readFileSync } from 'node:fs';

const TOPICS = ['invoice', 'flight', 'meeting', 'recipe', 'contract', 'garden', 'lesson', 'repair', 'payment', 'concert'];
const PLACES = ['Lisbon', 'Oslo', 'Kraków', 'Lyon', 'Porto', 'Ghent', 'Turin', 'Bergen', 'Graz', 'Malmö', 'Cork', 'Basel', 'Split'];
const SPECIAL = JSON.parse(readFileSync(new URL('special.json', import.meta.url), 'utf8'));

// Returns a day of 2026 at 09:30 UTC in a spelling from 0 to 7.
function spelled(day, spelling) {
  const date = new Date(Date.UTC(2026, 0, 1 + day, 9, 30));
  const [whole] = date.toISOString().split('T');
  const [year, month, number] = whole.split('-');
  const long = date.toLocaleDateString('en-US', { month: 'long', timeZone: 'UTC' });
  return [
    `${whole}T09:30:00Z`,
    whole,
    `${whole}T11:30:00+02:00`,
    date.getTime() / 1000,
    date.getTime(),
    date.toUTCString(),
    `${date.getUTCDate()} ${long} ${year}`,
    `${month}/${number}/${year}`,
  ][spelling];
}

// Returns a numbered note, of a data set if there are several.
function note(number, dataSet) {
  const topic = TOPICS[number % TOPICS.length];
  const amount = `${(number * 37) % 1000}.${String(number % 100).padStart(2, '0')}`;
  const prefix = dataSet ? `${dataSet}-` : '';
  const capital = topic[0].toUpperCase() + topic.slice(1);
  return {
    id: `${prefix}note-${String(number).padStart(4, '0')}`,
    title: `${dataSet ? `${dataSet} ` : ''}${capital} ${number}`,
    text:
      `The ${topic} number ${number} for ${PLACES[number % PLACES.length]}: ${amount} euros in the ledger.` +
      (dataSet ? ` (${dataSet})` : ''),
    url: `https://notes.example.com/${prefix}${number}`,
    date: spelled((number - 1) % 365, number % 8),
  };
}

// Returns a text with numbered lines, of a length in characters.
function lengthened(text, length) {
  const lines = [text];
  for (let total = text.length, number = 1; total < length; number += 1) {
    lines.push(`Line ${number} of the special text, in the ledger of marmalade.`);
    total += lines.at(-1).length + 1;
  }
  return lines.join('\n').slice(0, length);
}

// Returns a special record, with its id as in results.
function special(entry) {
  const record = {};
  for (const name of ['id', 'title', 'text', 'url', 'date']) if (name in entry) record[name] = entry[name];
  if (entry.id_length) record.id = `${record.id}-`.padEnd(entry.id_length, 'x');
  return record;
}

// Returns an id as text: JSON for what is no string.
const key = (id) => (typeof id === 'string' ? id : JSON.stringify(id ?? null));

// The records of a server, with a count of the fetches of changing texts.
export class Corpus {
  constructor(notes, dataSet) {
    const numbered = Array.from({ length: notes }, (_, index) => ({ entry: {}, record: note(index + 1, dataSet) }));
    const others = dataSet ? [] : SPECIAL.map((entry) => ({ entry, record: special(entry) }));
    this.records = [...numbered, ...others];
    this.haystacks = this.records.map(({ record }) => `${record.title} ${record.text}`.toLowerCase());
    this.byId = new Map();
    for (const found of this.records) {
      const { id, url } = found.record;
      for (const name of [id == null || id === '' ? null : key(id), url]) {
        if (name && !this.byId.has(name)) this.byId.set(name, found);
      }
    }
    this.fetches = 0;
  }

  // Returns hits with any of the words, those with more of them first, and their number. `*` finds all.
  search(query, offset, limit) {
    const words = [...new Set(query.toLowerCase().split(/\s+/).filter(Boolean))];
    const isAll = words.length === 1 && words[0] === '*';
    const found = [];
    this.haystacks.forEach((haystack, number) => {
      const score = isAll ? 1 : words.filter((word) => haystack.includes(word)).length;
      if (score) found.push({ score, number });
    });
    found.sort((a, b) => b.score - a.score || a.number - b.number);
    const hits = found.slice(offset, offset + limit).map(({ number }) => this.records[number].record);
    return { hits, total: found.length };
  }

  // Returns the record with an id or a URL, or undefined.
  fetch(id) {
    const found = this.byId.get(key(id));
    if (!found || found.entry.is_gone) return undefined;
    const { entry } = found;
    const { date, ...record } = found.record;
    if (entry.text_length) {
      const version = entry.is_changing ? `Version ${(this.fetches += 1)}. ` : '';
      record.text = lengthened(version + record.text, entry.text_length);
    }
    return { ...record, id: entry.id_in_fetch ?? record.id, metadata: { date } };
  }
}
