//! The choice of a body among the alternatives of a message (`multipart/alternative`).
//!
//! Both alternatives should have the same text, and then the plain one is shown. Some programs write a plain part that
//! is empty, asks for another program, or has only the first lines. Then the HTML is the body: the words of both are
//! compared, without case, punctuation and addresses.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use fetchwell_core::record::html_text::html_to_text;
use mail_parser::{Message, MessagePart, MimeHeaders, PartType};

use super::charset::decoded;

/// Maximum number of different words of an alternative that are compared.
const MAX_WORDS: usize = 100_000;

/// Maximum number of different words of a plain part that only asks for another program.
const MAX_STUB_WORDS: usize = 60;

/// Words of a plain part that asks for another program, in every language.
const STUB_WORDS: [&str; 2] = ["html", "browser"];

/// The parts of a message that are its body.
#[derive(Debug)]
pub(super) struct Bodies {
    ids: HashSet<u32>,
    /// Texts of HTML parts that were converted to choose them.
    converted: HashMap<u32, String>,
}

impl Bodies {
    /// Chooses the plain parts of each alternative, or those with HTML if they say more.
    pub(super) fn choose(message: &Message<'_>) -> Self {
        let mut bodies = Self { ids: message.text_body.iter().copied().collect(), converted: HashMap::new() };
        let html_body = message.html_body.iter().copied().collect();
        let mut end = 0;
        for (at, part) in message.parts.iter().enumerate() {
            // An alternative within another one belongs to it.
            if part.offset_header >= end && is_alternative(part) {
                end = part.offset_end;
                let inside = message.parts.iter().enumerate().skip(at + 1);
                let inside = inside.take_while(|(_, part)| part.offset_header < end);
                let inside = inside.filter_map(|(at, _)| u32::try_from(at).ok());
                bodies.compare(message, inside, &html_body);
            }
        }
        bodies
    }

    /// Returns true if a part is a body.
    pub(super) fn contains(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// Returns the text of an HTML part, if it is known already.
    pub(super) fn take_converted(&mut self, id: u32) -> Option<String> {
        self.converted.remove(&id)
    }

    /// Replaces the plain parts of an alternative by those with HTML if they say more.
    fn compare(
        &mut self,
        message: &Message<'_>,
        inside: impl Iterator<Item = u32>,
        html_body: &HashSet<u32>,
    ) {
        let (mut plain, mut markup) = (HashMap::new(), HashMap::new());
        for id in inside.filter(|id| html_body.contains(id) != self.contains(*id)) {
            let Some(part) = usize::try_from(id).ok().and_then(|at| message.parts.get(at)) else { continue };
            let Some(text) = decoded(message, part) else { continue };
            match &part.body {
                PartType::Html(_) if !self.contains(id) => markup.insert(id, text),
                PartType::Text(_) if self.contains(id) => plain.insert(id, text),
                _ => None,
            };
        }
        if covers(plain.values(), markup.values()) {
            return;
        }
        let html: HashMap<u32, String> =
            markup.into_iter().map(|(id, markup)| (id, html_to_text(&markup))).collect();
        if says_more(html.values(), plain.values()) {
            plain.keys().for_each(|id| {
                self.ids.remove(id);
            });
            self.ids.extend(html.keys());
            self.converted.extend(html);
        }
    }
}

fn is_alternative(part: &MessagePart<'_>) -> bool {
    let is_alternative = part.content_type().is_some_and(|found| found.subtype() == Some("alternative"));
    is_alternative && matches!(part.body, PartType::Multipart(_))
}

/// Returns true if the plain parts lack most words of the HTML, and are not the longer text in other words.
fn says_more<'a>(
    html: impl Iterator<Item = &'a String>,
    plain: impl Iterator<Item = &'a Cow<'a, str>>,
) -> bool {
    let (rich, poor) = (Words::read(html.map(String::as_str)), Words::read(plain.map(AsRef::as_ref)));
    let missing = rich.hashes.difference(&poor.hashes).count();
    let is_longer = rich.hashes.len() > poor.hashes.len();
    missing * 2 > rich.hashes.len() && (is_longer || poor.is_stub())
}

/// Number of bits in which the words of plain parts are marked.
const SKETCH_BITS: usize = 1 << 16;

/// Elements with text that is not displayed.
const HIDDEN: [&str; 3] = ["style", "script", "title"];

/// Returns true if the plain parts have three of four words of the HTML. Most messages do, and their HTML is not
/// converted: this takes a tenth of the time. Words that are not displayed count as missing.
fn covers<'a>(
    plain: impl Iterator<Item = &'a Cow<'a, str>>,
    markup: impl Iterator<Item = &'a Cow<'a, str>>,
) -> bool {
    let mut marks = vec![false; SKETCH_BITS];
    for place in plain.flat_map(|text| sketch_places(text)) {
        if let Some(mark) = marks.get_mut(place) {
            *mark = true;
        }
    }
    let (mut found, mut missing) = (0_usize, 0_usize);
    // The text after each tag, and after each entity in it.
    let texts = markup.flat_map(|markup| markup.split('<')).filter_map(|tag| {
        let (name, text) = tag.split_once('>').unwrap_or(("", tag));
        let is_hidden = HIDDEN
            .iter()
            .any(|hidden| name.get(..hidden.len()).is_some_and(|start| start.eq_ignore_ascii_case(hidden)));
        (!is_hidden).then_some(text)
    });
    let texts = texts.flat_map(|text| text.split('&')).map(|text| match text.split_once(';') {
        Some((entity, after)) if entity.len() <= 8 => after,
        _ => text,
    });
    for place in texts.flat_map(sketch_places) {
        *(if marks.get(place) == Some(&true) { &mut found } else { &mut missing }) += 1;
    }
    found > 0 && found >= 3 * missing
}

/// Returns the places at which the words of a text are marked.
fn sketch_places(text: &str) -> impl Iterator<Item = usize> + '_ {
    let words = text.as_bytes().split(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(|word| {
        let hash = word.iter().fold(0x811C_9DC5_usize, |hash, byte| {
            (hash ^ usize::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
        });
        (hash ^ hash >> 15) % SKETCH_BITS
    })
}

/// The different words of a text.
#[derive(Debug, Default)]
struct Words {
    /// Hashes of the words in lower case.
    hashes: HashSet<u64>,
}

impl Words {
    fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut words = Self::default();
        for token in texts.flat_map(str::split_whitespace) {
            // Only HTML has a target for each link.
            if words.hashes.len() < MAX_WORDS && !token.contains("://") && !token.contains('@') {
                words.add(token);
            }
        }
        words
    }

    fn add(&mut self, token: &str) {
        let mut word = WordHash::default();
        for character in token.chars() {
            if !character.is_alphanumeric() || has_no_spaces(character) {
                self.hashes.extend(std::mem::take(&mut word).finish());
            }
            if character.is_alphanumeric() {
                character.to_lowercase().for_each(|lower| word.add(lower));
            }
            if has_no_spaces(character) {
                self.hashes.extend(std::mem::take(&mut word).finish());
            }
        }
        self.hashes.extend(word.finish());
    }

    /// Returns true for a few words that ask for another program.
    fn is_stub(&self) -> bool {
        self.hashes.len() <= MAX_STUB_WORDS
            && STUB_WORDS.iter().any(|word| {
                let mut hash = WordHash::default();
                word.chars().for_each(|character| hash.add(character));
                hash.finish().is_some_and(|hash| self.hashes.contains(&hash))
            })
    }
}

/// Returns true for a character of a script without spaces between words: each counts as a word.
fn has_no_spaces(character: char) -> bool {
    matches!(character, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// The hash FNV-1a of a word.
#[derive(Debug, Default)]
struct WordHash(Option<u64>);

impl WordHash {
    fn add(&mut self, character: char) {
        let hash = self.0.unwrap_or(0xCBF2_9CE4_8422_2325);
        self.0 = Some((hash ^ u64::from(character)).wrapping_mul(0x0000_0100_0000_01B3));
    }

    /// Returns the hash, or `None` without a character.
    fn finish(self) -> Option<u64> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_richer_alternative_is_chosen() {
        let long =
            "The ferry leaves pier three at noon, and the harbour master waits for all guests with tea.";
        let cases: [(&str, &str, bool); 13] = [
            ("This message needs an HTML viewer.", "Order ZX-4471 ships on 12 March. parcel photo", true),
            ("This message needs an HTML viewer.", "Your code is 48213", true),
            ("Please open this e-mail in your browser: https://x.test", "Code 48213", true),
            ("", "Hello", true),
            ("   \n", "Hello", true),
            ("The ferry leaves ...", long, true),
            (long, long, false),
            // The HTML has targets of links, and other punctuation.
            (
                long,
                "The FERRY (https://x.test/1) leaves pier three at noon - and the harbour master waits for all guests with tea!",
                false,
            ),
            // A footer that only the HTML has.
            (long, &format!("{long} Unsubscribe here, harbour line limited"), false),
            (long, "", false),
            // A picture with a short name.
            (long, "View online", false),
            ("Die Fähre legt um zwölf Uhr am dritten Steg ab", "The ferry leaves at noon", false),
            ("船は正午に\n出発します", "船は正午に出発します", false),
        ];
        for (plain, html, expect) in cases {
            let (plain, html) = ([Cow::Borrowed(plain)], [html.to_owned()]);
            assert_eq!(says_more(html.iter(), plain.iter()), expect, "{plain:?} {html:?}");
            let markup = [Cow::Owned(format!("<TITLE>x y z</TITLE><p class='a b c'>{}</p>", html[0]))];
            assert!(!expect || !covers(plain.iter(), markup.iter()), "{plain:?} {html:?}");
        }
        let plain = [Cow::Borrowed("One two & three four")];
        for (markup, expect) in [
            ("<style>.a { b: c }</style><p id=x>One <b>TWO</b> &amp; three&nbsp;four", true),
            ("<p>One two three five six", false),
            ("<p>", false),
            ("", false),
        ] {
            assert_eq!(covers(plain.iter(), [Cow::Borrowed(markup)].iter()), expect, "{markup}");
        }
    }
}
