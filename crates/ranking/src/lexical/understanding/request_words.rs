//! The share that each word of a query has beside a word of its matter.
//!
//! A *frame* is a sequence of words of a request, such as `show me the mail that deals with`: its words have a
//! small share. Function words elsewhere in such a query have a larger one; other words, also those of a request in another
//! place, are the matter. A query without a frame or without matter is searched as it is, so nothing vanishes.

use super::record_kind::RecordKind;
use super::word_lists::{Language, WordClass, classes_of, words_of_language};

/// Share of a whole word, in percent.
pub(crate) const WHOLE: u8 = 100;

/// Share of a word of a frame, in percent.
const FRAME_SHARE: u8 = 8;

/// Share of a function word outside of the frames of a query, in percent.
const FUNCTION_SHARE: u8 = 40;

/// Minimum number of different words of a language in a query whose lists apply to it. The lists of English always apply.
const MIN_WORDS_OF_LANGUAGE: usize = 2;

/// Minimum number of words of a frame at the beginning or end of a query, and of one within it.
const MIN_FRAME: usize = 2;
const MIN_INNER_FRAME: usize = 4;

/// Word of a query in its order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryWord<'a> {
    /// Folded text of the word.
    pub(crate) text: &'a str,
    pub(crate) role: WordRole,
}

/// Role of a word that does not follow from its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordRole {
    /// Word that may be one of a request.
    Plain,
    /// Word that is the matter whatever it is: one in quotes, or of an identifier.
    Matter,
    /// Word of a date, with its share in percent.
    Date(u8),
}

/// Shares of the words of a query, and what they ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Share of each word, in percent.
    pub(crate) shares: Vec<u8>,
    /// Kinds of records that the frames name.
    pub(crate) kinds: Vec<RecordKind>,
    /// False for a query of words of requests and dates alone.
    pub(crate) has_matter: bool,
}

/// Class of a word in the languages of a query.
#[derive(Debug, Clone, Copy, Default)]
struct Classed {
    is_function: bool,
    is_about: bool,
    is_question: bool,
    is_asking: bool,
    noun: Option<RecordKind>,
    is_thing: bool,
}

impl Classed {
    fn is_request(self) -> bool {
        self.is_function
            || self.is_about
            || self.is_question
            || self.is_asking
            || self.is_thing
            || self.noun.is_some()
    }

    /// Returns true for a word that has little meaning anywhere in a query.
    fn is_light(self) -> bool {
        self.is_function || self.is_about || self.is_question
    }
}

/// Returns true for a word of a request in any language, other than an article or another function word.
pub(crate) fn asks(word: &str) -> bool {
    classes_of(word).iter().any(|(_, class)| *class != WordClass::Function)
}

/// Returns true for a word of a request in any language.
pub(crate) fn is_listed(word: &str) -> bool {
    !classes_of(word).is_empty()
}

/// Returns the shares of the words of a query.
pub(crate) fn shares_of(words: &[QueryWord<'_>]) -> Shares {
    let plain = || words.iter().filter(|word| word.role == WordRole::Plain).map(|word| word.text);
    let others = [
        Language::German,
        Language::French,
        Language::Spanish,
        Language::Italian,
        Language::Portuguese,
        Language::Dutch,
    ];
    let mut languages = vec![Language::English];
    languages.extend(
        others.into_iter().filter(|language| words_of_language(plain(), *language) >= MIN_WORDS_OF_LANGUAGE),
    );
    let classed: Vec<Classed> = words.iter().map(|word| class(word, &languages)).collect();
    let mut shares = vec![WHOLE; words.len()];
    let mut kinds = Vec::new();
    let (mut start, mut has_frame) = (0, false);
    while start < classed.len() {
        let rest = classed.get(start..).unwrap_or_default();
        let length = rest.iter().take_while(|word| word.is_request()).count();
        let run = rest.get(..length).unwrap_or_default();
        let place = match (start, start + length == classed.len()) {
            (0, _) => RunPlace::Start,
            (_, true) => RunPlace::End { has_start: has_frame },
            (_, false) => RunPlace::Inside,
        };
        if is_frame(run, place) {
            has_frame = true;
            shares.iter_mut().skip(start).take(length).for_each(|share| *share = FRAME_SHARE);
            kinds.extend(run.iter().filter_map(|word| word.noun));
        }
        start += length.max(1);
    }
    if has_frame {
        for (share, _) in shares.iter_mut().zip(&classed).filter(|(_, word)| word.is_light()) {
            *share = (*share).min(FUNCTION_SHARE);
        }
    }
    let has_date = words.iter().any(|word| matches!(word.role, WordRole::Date(_)));
    let is_matter = |(at, share): (usize, &u8)| {
        let word = words.get(at).filter(|word| !matches!(word.role, WordRole::Date(_)));
        // With a date alone, `mails of last week` asks for the kind.
        let is_request = classed.get(at).is_some_and(|word| word.noun.is_some() || word.is_light());
        *share == WHOLE && word.is_some() && !(has_date && is_request)
    };
    let has_matter = shares.iter().enumerate().any(is_matter);
    if !has_matter && !has_date {
        return Shares { shares: vec![WHOLE; words.len()], kinds: Vec::new(), has_matter: !words.is_empty() };
    }
    if !has_matter {
        kinds.extend(classed.iter().filter_map(|word| word.noun));
    }
    for (share, word) in shares.iter_mut().zip(words) {
        match word.role {
            // Without matter, a text with the date is the best that words can find.
            WordRole::Date(of_date) if has_matter => *share = of_date,
            WordRole::Plain if !has_matter => *share = FRAME_SHARE,
            _ => {}
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    Shares { shares, kinds, has_matter }
}

/// Place of a sequence of words of a request in a query.
#[derive(Debug, Clone, Copy)]
enum RunPlace {
    Start,
    Inside,
    /// At the end of a query, which begins with a frame or does not.
    End {
        has_start: bool,
    },
}

/// Returns true if a sequence of words of a request is a frame. At an end of the query it asks, or it is a noun of a kind and
/// leads to the matter (`the mail about`). Within a text, verbs such as `find` are mostly the matter, so only a long sequence
/// is a frame there. German and Dutch requests end with a single verb.
fn is_frame(run: &[Classed], place: RunPlace) -> bool {
    let has = |is: fn(&Classed) -> bool| run.iter().any(is);
    let asks = has(|word| word.is_asking) || has(|word| word.is_question);
    let min = match place {
        RunPlace::Inside => return run.len() >= MIN_INNER_FRAME && has(|word| word.is_asking),
        RunPlace::End { has_start: true } => 1,
        RunPlace::Start | RunPlace::End { .. } => MIN_FRAME,
    };
    let names_kind = has(|word| word.noun.is_some() || word.is_thing) && has(|word| word.is_about);
    run.len() >= min && (asks || names_kind)
}

/// Returns the class of a word in some languages.
fn class(word: &QueryWord<'_>, languages: &[Language]) -> Classed {
    let mut classed = Classed::default();
    if word.role != WordRole::Plain {
        return classed;
    }
    for (language, class) in classes_of(word.text) {
        if !languages.contains(language) {
            continue;
        }
        match class {
            WordClass::Function => classed.is_function = true,
            WordClass::About => classed.is_about = true,
            WordClass::Question => classed.is_question = true,
            WordClass::Asking => classed.is_asking = true,
            WordClass::Thing => classed.is_thing = true,
            WordClass::Noun(kind) => classed.noun = Some(*kind),
        }
    }
    classed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::words::words;

    /// Returns the words of a query that are its matter, those of frames in parentheses, and kinds behind a bar.
    fn understood(query: &str) -> String {
        let texts = words(query).filter(|word| !word.is_joined());
        let texts: Vec<String> = texts.map(|word| word.folded(query)).collect();
        let plain = |text| QueryWord { text, role: WordRole::Plain };
        let plain: Vec<QueryWord<'_>> = texts.iter().map(|text| plain(text.as_str())).collect();
        let Shares { shares, kinds, .. } = shares_of(&plain);
        let written = texts.iter().zip(&shares).filter_map(|(text, share)| match *share {
            WHOLE => Some(text.clone()),
            FRAME_SHARE => None,
            _ => Some(format!("({text})")),
        });
        let written: Vec<String> = written.collect();
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
        if kinds.is_empty() {
            written.join(" ")
        } else {
            format!("{} | {}", written.join(" "), kinds.join(" "))
        }
    }

    #[test]
    fn frames_of_requests_have_a_small_share() {
        for (query, expect) in [
            (
                "Show me the commit where somebody deals with update handles lines",
                "update handles lines | Commit",
            ),
            ("find the mail about harbour lease", "harbour lease | Mail"),
            ("what did we say about the harbour lease?", "harbour lease"),
            ("Do you remember which note mentions sourdough and rye?", "sourdough (and) rye | Note"),
            ("harbour lease, which page explains it", "harbour lease | Document"),
            ("the mail about harbour lease", "harbour lease | Mail"),
            ("Zeig mir die Mail, in der es um den Hafenvertrag geht", "hafenvertrag | Mail"),
            ("Kannst du mir die Notiz über Sauerteig zeigen", "sauerteig | Note"),
            ("Montre-moi le message qui parle du contrat", "contrat | Mail"),
            ("busca el correo que habla del contrato", "contrato | Mail"),
            ("trova la nota che parla di lievito", "lievito | Note"),
            ("encontra a mensagem que fala do contrato", "contrato | Mail"),
            ("zoek het bericht dat gaat over huurcontract", "huurcontract | Mail"),
            ("quel document explique la facture", "facture | Document"),
        ] {
            assert_eq!(understood(query), expect, "{query}");
        }
    }

    #[test]
    fn words_of_requests_elsewhere_are_the_matter() {
        for (query, expect) in [
            ("find command", "find command"),
            ("commit message format", "commit message format"),
            ("page layout", "page layout"),
            ("Returns the record of the given page", "returns the record of the given page"),
            ("die hard", "die hard"),
            ("facture du plombier", "facture du plombier"),
            ("invoice", "invoice"),
            ("東京 page", "東 東京 京 page"),
            // Without matter, a query is searched as it is.
            ("to be or not to be", "to be or not to be"),
            ("the who", "the who"),
            ("Show me the page", "show me the page"),
            ("", ""),
        ] {
            assert_eq!(understood(query), expect, "{query}");
        }
    }

    #[test]
    fn words_that_are_not_plain_are_the_matter() {
        let word = |(text, role)| QueryWord { text, role };
        let (plain, date) = (WordRole::Plain, WordRole::Date(20));
        let query = [("show", plain), ("me", plain), ("find", WordRole::Matter), ("2025", date)].map(word);
        assert_eq!(shares_of(&query).shares, [FRAME_SHARE, FRAME_SHARE, WHOLE, 20]);
        let query = [("mails", plain), ("of", plain), ("yesterday", date)].map(word);
        let expect = Shares {
            shares: vec![FRAME_SHARE, FRAME_SHARE, WHOLE],
            kinds: vec![RecordKind::Mail],
            has_matter: false,
        };
        assert_eq!(shares_of(&query), expect);
    }
}
