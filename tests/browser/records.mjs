// The records of the tests: hostile texts that a page must show as text, and unusual ids.

/** A script that leaves a mark on the page if it runs. */
export const HOSTILE = `<script>window.x=1</script><img src=x onerror="window.x=1"><svg onload=window.x=1>
</pre></main></style><style>body{display:none}</style><iframe srcdoc="<script>parent.x=1</script>"></iframe>
<a href="javascript:window.x=1">click</a> <form action=https://evil.example><button>Sign in</button></form>
<meta http-equiv=refresh content="0;url=https://evil.example"><base href=https://evil.example> &lt;b&gt; &amp; ' "`;

/** A text of many parts with different lines. */
export const LONG = Array.from({ length: 5000 }, (_, line) => `Line ${line} of a long text, with naïve words.\n\n`)
  .join('')
  .slice(0, 200_000);

const LETTER = `Dear Ann,

thank you for the quick answer. The roof has been looked at on Tuesday, and nothing needs to be done before winter. The gutter on the
north side is another matter: it leaks where the two halves meet, and the water runs down the wall of the kitchen. I would have it
soldered in October, while the scaffold of the neighbours still stands.

  • solder the joint of the gutter        180.00
  • paint the wall of the kitchen          95.50

Tell me until Friday whether that suits you; the address is https://roofs.example.com/offers/7731?from=mail&lang=en.

Kind regards,
Marta Lindqvist`;

export const RECORDS = {
  letter: { subject: 'Offer for the gutter on the north side', from: 'Marta Lindqvist <marta@roofs.example.com>', amount: 275.5, labels: ['house', 'offers'], body: LETTER },
  hostile: { subject: HOSTILE.replaceAll('\n', ' '), body: HOSTILE },
  rightToLeft: { subject: 'فاتورة شهر نوفمبر 2026', body: 'مرحبا آن،\n\nالمبلغ هو 1,200.50 EUR قبل نهاية الشهر.\nThis line is English.\nשלום' },
  emoji: { subject: '🦀 shipped! 👩‍👩‍👧‍👦', body: '🎉🎉🎉\n日本語のテキスト' },
  script: { subject: 'A link that is none', url: 'javascript:window.x=1', body: 'Nothing to click.' },
  own: { subject: 'A page of its own', url: 'https://wiki.example.com/pages/7?a=1&b=2', body: 'It is somewhere else, too.' },
  long: { text: LONG },
  // Browsers drop the first line break of a <pre>.
  leading: { text: '\n\nTwo empty lines come before this.\n' },
  wide: { subject: 'w'.repeat(300), body: 'https://example.com/' + 'unbroken'.repeat(60) },
};

/** Unusual ids of sources. Each is a record with the id as its text. */
export const ODD_IDS = ['100%', 'a%2Fb', 'folder/sub folder/Grüße.md', 'ключ 7', '?x=1&y=2#z', 'quote"\'<b>', '-', '🦀'];

/** The connection of a person, which is part of the names of records. */
export const connectionOf = (who) => `cin_${who}`;

/** Percent-encodes all characters except letters, digits and `-._~`. */
export const encoded = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

/** The handle of a record, unescaped if a model can copy it. */
export function handleOf(who, id) {
  const isPlain = /^[!-~]+$/.test(id) && !/["'`<>\\/]|\.\./.test(id);
  return isPlain ? `${connectionOf(who)}/notes:${id}` : [connectionOf(who), 'notes', id].map(encoded).join('/');
}

/** The input of `fetchwell import records`. */
export function linesOf(who) {
  const line = (key, data) => JSON.stringify({ stream: 'notes', key, data, emitted_at: '2026-11-02T09:15:00Z' });
  const own = [line('secret', { subject: `Only for ${who}`, body: `This is only for ${who}.` })];
  if (who !== 'ann') return own.join('\n');
  const named = Object.entries(RECORDS).map(([key, data]) => line(key, data));
  return [...own, ...named, ...ODD_IDS.map((id) => line(id, { text: `The id is ${id}` }))].join('\n');
}
