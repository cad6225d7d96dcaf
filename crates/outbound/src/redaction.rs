//! Redaction of secrets in responses of servers.
//!
//! A `Redactor` finds a secret as plain text, percent-encoded, with JSON escapes or numeric HTML entities, in Base64
//! (both alphabets) and Base32 at any offset of a longer text, and in hexadecimal, in upper or lower case, and
//! replaces it by a placeholder. A truncated secret is found by its first 16 bytes. It works on bytes before they are
//! parsed, so that nothing that is parsed contains the secret.

use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;

/// Replacement for a secret.
const PLACEHOLDER: &[u8] = b"[redacted]";

/// Minimum length of a redacted secret in bytes. A shorter one occurs in unrelated texts.
const MIN_SECRET_BYTES: usize = 8;

/// Minimum length of a redacted prefix in bytes, since servers truncate what they quote.
const MIN_PREFIX_BYTES: usize = 16;

/// Maximum number of forms: one bit each of [`Forms`].
const MAX_FORMS: usize = 64;

/// Set of forms, by their index in [`Redactor::forms`].
type Forms = u64;

/// Finds secrets in all their forms. `Debug` prints none of them.
pub struct Redactor {
    forms: Vec<Form>,
    /// Forms that can begin with a byte.
    by_first: [Forms; 256],
    /// Forms with this byte as a possible second one.
    by_second: [Forms; 256],
}

/// Form of a secret: lower case, no two adjacent backslashes, at least two bytes.
#[derive(PartialEq, Eq)]
struct Form {
    bytes: Vec<u8>,
    /// Minimum number of its bytes that count as a match.
    min_bytes: usize,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Creates a redactor of secrets. Ignores secrets of less than 8 bytes.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<Form> = Vec::new();
        for secret in secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
            for form in forms_of(secret.as_bytes()) {
                if forms.len() < MAX_FORMS && !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        let (mut by_first, mut by_second) = ([0; 256], [0; 256]);
        for (number, form) in forms.iter().enumerate() {
            let bit = 1 << number;
            let mark = |table: &mut [Forms; 256], byte: u8| {
                for byte in [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] {
                    if let Some(forms) = table.get_mut(usize::from(byte)) {
                        *forms |= bit;
                    }
                }
            };
            if let [first, second, ..] = form.bytes.as_slice() {
                mark(&mut by_first, *first);
                // The second byte may be written as an escape.
                [*second, b'\\', b'%', b'&'].into_iter().for_each(|byte| mark(&mut by_second, byte));
            }
        }
        Self { forms, by_first, by_second }
    }

    /// Redacts a JSON text, which remains valid JSON: outside of strings, only a number can be the secret, and digits
    /// replace it.
    pub fn redact_json(&self, text: Bytes) -> Bytes {
        let spans = self.spans(&text);
        if spans.is_empty() {
            return text;
        }
        let mut redacted = Vec::with_capacity(text.len());
        let (mut done, mut is_in_string) = (0, false);
        for span in spans {
            let before = text.get(done..span.start).unwrap_or_default();
            is_in_string = ends_in_string(before, is_in_string);
            redacted.extend_from_slice(before);
            if is_in_string {
                redacted.extend_from_slice(PLACEHOLDER);
            } else {
                redacted.extend(std::iter::repeat_n(b'1', span.len()));
            }
            done = span.end;
        }
        redacted.extend_from_slice(text.get(done..).unwrap_or_default());
        redacted.into()
    }

    /// Redacts a text.
    pub fn redact_text(&self, text: &str) -> String {
        let mut redacted = Vec::with_capacity(text.len());
        let mut done = 0;
        for span in self.spans(text.as_bytes()) {
            redacted.extend_from_slice(text.as_bytes().get(done..span.start).unwrap_or_default());
            redacted.extend_from_slice(PLACEHOLDER);
            done = span.end;
        }
        redacted.extend_from_slice(text.as_bytes().get(done..).unwrap_or_default());
        String::from_utf8_lossy(&redacted).into_owned()
    }

    /// Returns the ranges of secrets, in order and without overlaps.
    fn spans(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        if self.forms.is_empty() {
            return spans;
        }
        let marked = |table: &[Forms; 256], byte: u8| table.get(usize::from(byte)).copied().unwrap_or(0);
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let forms = match byte {
                b'\\' | b'%' | b'&' => {
                    decode(text, at, None).map_or(0, |(decoded, _)| marked(&self.by_first, decoded))
                }
                byte => match marked(&self.by_first, *byte) {
                    0 => 0,
                    forms => forms & text.get(at + 1).map_or(0, |second| marked(&self.by_second, *second)),
                },
            };
            match self.longest_match(text, at, forms).filter(|_| !is_escaped(text, at)) {
                Some(end) => {
                    spans.push(at..end);
                    at = end;
                }
                None => at += 1,
            }
        }
        spans
    }

    /// Returns the end of the longest of these forms that begins at `at`.
    fn longest_match(&self, text: &[u8], at: usize, mut forms: Forms) -> Option<usize> {
        let mut longest = None;
        while forms != 0 {
            let number = usize::try_from(forms.trailing_zeros()).unwrap_or(MAX_FORMS);
            forms &= forms - 1;
            let end = self.forms.get(number).and_then(|form| match_at(text, at, form));
            longest = longest.max(end);
        }
        longest
    }
}

type Encoding = fn(&[u8]) -> Vec<u8>;

/// Returns the forms of a secret, in lower case.
fn forms_of(secret: &[u8]) -> Vec<Form> {
    let prefix = MIN_PREFIX_BYTES.min(secret.len());
    let hexadecimal = secret.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let mut forms = vec![(secret.to_vec(), prefix), (hexadecimal, 2 * prefix)];
    // `bits` is the number of bits in a character. Which characters are used depends only on the secret.
    let mut encode = |offset: usize, bits: usize, encodings: &[Encoding]| {
        let shifted: Vec<u8> = std::iter::repeat_n(0, offset).chain(secret.iter().copied()).collect();
        let start = (8 * offset).div_ceil(bits);
        let (end, prefix_end) = (8 * shifted.len() / bits, 8 * (offset + prefix) / bits);
        for encoding in encodings {
            let encoded = encoding(&shifted).get(start..end).map(<[u8]>::to_vec);
            forms.extend(encoded.map(|encoded| (encoded, prefix_end - start)));
        }
    };
    for offset in 0..3 {
        let standard = |bytes: &[u8]| STANDARD_NO_PAD.encode(bytes).into_bytes();
        encode(offset, 6, &[standard, |bytes| URL_SAFE_NO_PAD.encode(bytes).into_bytes()]);
    }
    for offset in 0..5 {
        encode(offset, 5, &[base32]);
    }
    let form = |(mut bytes, min_bytes): (Vec<u8>, usize)| {
        bytes.make_ascii_lowercase();
        bytes.dedup_by(|next, before| *next == b'\\' && *before == b'\\');
        Form { min_bytes: min_bytes.min(bytes.len()), bytes }
    };
    forms.into_iter().map(form).collect()
}

/// Returns the Base32 of RFC 4648, in lower case and without padding.
fn base32(bytes: &[u8]) -> Vec<u8> {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let character = |bits: &[u8]| {
        let value = bits.iter().chain(&[0; 5]).take(5).fold(0, |value, bit| value << 1 | bit);
        if value < 26 { b'a' + value } else { b'2' + value - 26 }
    };
    bits.chunks(5).map(character).collect()
}

/// Returns the end of a form at `at`, or of a sufficient prefix of it, plain or with escapes.
fn match_at(text: &[u8], at: usize, form: &Form) -> Option<usize> {
    let plain_end = at + form.bytes.len();
    if text.get(at..plain_end).is_some_and(|plain| plain.eq_ignore_ascii_case(&form.bytes)) {
        return Some(plain_end);
    }
    let (mut end, mut matched) = (at, 0);
    for expect in &form.bytes {
        match decode(text, end, Some(*expect)) {
            Some((byte, next)) if byte.to_ascii_lowercase() == *expect => end = next,
            _ => break,
        }
        matched += 1;
    }
    (matched >= form.min_bytes).then_some(end)
}

/// Maximum depth of nested percent-encodings that are decoded.
const MAX_ENCODINGS: usize = 3;

/// Decodes the byte at `at` and returns it with the index behind it. A backslash belongs to the character behind it,
/// unless `expect` says otherwise.
fn decode(text: &[u8], at: usize, expect: Option<u8>) -> Option<(u8, usize)> {
    let read = json_decoded(text, at, expect)?;
    if let (b'&', next) = read
        && let Some(decoded) = entity_decoded(text, next)
    {
        return Some(decoded);
    }
    percent_decoded(text, read, MAX_ENCODINGS)
}

/// Maximum number of digits of a numeric HTML entity.
const MAX_ENTITY_DIGITS: usize = 7;

/// Decodes the numeric HTML entity after an `&`, if it stands for an ASCII character.
fn entity_decoded(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let (radix, start) = match text.get(at..at + 2)? {
        [b'#', b'x' | b'X'] => (16, at + 2),
        [b'#', _] => (10, at + 1),
        _ => return None,
    };
    let rest = text.get(start..)?;
    let digits = rest.iter().take(MAX_ENTITY_DIGITS + 1).position(|byte| *byte == b';')?;
    let number = rest
        .get(..digits)
        .filter(|digits| !digits.is_empty())?
        .iter()
        .try_fold(0, |number, digit| Some(number * radix + char::from(*digit).to_digit(radix)?))?;
    Some((u8::try_from(number).ok().filter(u8::is_ascii)?, start + digits + 1))
}

/// Decodes the percent-encoding after a byte that was just read. Its digits may be encoded too.
fn percent_decoded(text: &[u8], read: (u8, usize), encodings: usize) -> Option<(u8, usize)> {
    let (byte, next) = read;
    if byte != b'%' || encodings == 0 {
        return Some(read);
    }
    let digit = |at: usize| {
        let (byte, next) = percent_decoded(text, json_decoded(text, at, None)?, encodings - 1)?;
        Some((char::from(byte).to_digit(16)?, next))
    };
    let decoded = digit(next).and_then(|(high, at)| {
        let (low, at) = digit(at)?;
        Some((u8::try_from(high * 16 + low).ok().filter(u8::is_ascii)?, at))
    });
    decoded.map_or(Some(read), |decoded| percent_decoded(text, decoded, encodings - 1))
}

/// Decodes the JSON escape at `at`, even if its backslash was escaped several times.
fn json_decoded(text: &[u8], at: usize, expect: Option<u8>) -> Option<(u8, usize)> {
    let byte = *text.get(at)?;
    if byte != b'\\' {
        return Some((byte, at + 1));
    }
    let behind = at + text.get(at..)?.iter().take_while(|byte| **byte == b'\\').count();
    let decoded = match text.get(behind) {
        Some(b'u') => four_digits(text, behind + 1).map(|byte| (byte, behind + 5)),
        Some(byte @ (b'"' | b'/')) if expect.is_none_or(|expect| *byte == expect) => {
            Some((*byte, behind + 1))
        }
        _ => None,
    };
    Some(decoded.unwrap_or((b'\\', behind)))
}

/// Returns the ASCII character of four hexadecimal digits.
fn four_digits(text: &[u8], at: usize) -> Option<u8> {
    let mut digits = text.get(at..at + 4)?.iter().map(|digit| char::from(*digit).to_digit(16));
    let number = digits.try_fold(0, |number, digit| Some(number * 16 + digit?))?;
    u8::try_from(number).ok().filter(u8::is_ascii)
}

/// Returns true if the character at `at` belongs to an escape that begins before it.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    text.get(at) != Some(&b'\\') && before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Returns true if a piece of JSON ends inside a string. `begins_in_string` is true if it begins inside one.
fn ends_in_string(piece: &[u8], begins_in_string: bool) -> bool {
    let (mut is_in_string, mut is_escaped) = (begins_in_string, false);
    for byte in piece {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            _ => {}
        }
    }
    is_in_string
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &str = "tok_5ecret/Ab+9~x";

    fn redact(text: &str) -> String {
        Redactor::new([SECRET]).redact_text(text)
    }

    #[test]
    fn every_form_of_a_secret_is_redacted() {
        let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let unicode: String = SECRET.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let twice = percent.replace('%', "%25");
        let all_twice: String = percent.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let both = percent.replace('%', "\\u0025");
        let entities: String = SECRET.bytes().map(|byte| format!("&#{byte};")).collect();
        let hex_entities: String = SECRET.bytes().map(|byte| format!("&#x{byte:02X};")).collect();
        for form in [
            entities.replace('&', "\\u0026"),
            entities,
            hex_entities,
            SECRET.replace('/', "&#0047;"),
            SECRET.to_owned(),
            SECRET.to_uppercase(),
            SECRET.to_lowercase(),
            SECRET.replace('/', "\\/"),
            SECRET.replace('/', "%2f"),
            format!("Bearer {SECRET}"),
            percent,
            twice,
            all_twice,
            both,
            unicode.clone(),
            unicode.replace('\\', "\\\\"),
        ] {
            let shown = redact(&format!("a {form} b"));
            assert!(shown.starts_with("a ") && shown.ends_with("[redacted] b"), "{form}: {shown}");
        }
        for before in ["", "x", "xy", "Bearer "] {
            for encoded in [
                STANDARD.encode(format!("{before}{SECRET}")),
                URL_SAFE_NO_PAD.encode(format!("{before}{SECRET} behind")),
            ] {
                let shown = redact(&encoded);
                assert!(shown.contains("[redacted]"), "{encoded}: {shown}");
            }
        }
        for before in ["", "x", "xy", "xyz", "wxyz", "Bearer "] {
            let encoded = base32(format!("{before}{SECRET} behind").as_bytes());
            let encoded = String::from_utf8(encoded).unwrap();
            for encoded in [encoded.to_uppercase(), encoded] {
                let shown = redact(&encoded);
                assert!(shown.contains("[redacted]"), "{encoded}: {shown}");
            }
        }
        let hexadecimal: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(redact(&hexadecimal), "[redacted]");
    }

    #[test]
    fn a_secret_that_is_cut_short_is_redacted() {
        let secret = format!("{SECRET}and-much-more-of-it");
        let redactor = Redactor::new([secret.as_str()]);
        for bytes in [16, 17, 30, secret.len()] {
            let shown = secret.get(..bytes).unwrap();
            assert_eq!(redactor.redact_text(&format!("no {shown}...")), "no [redacted]...", "{shown}");
            for encoded in [
                STANDARD.encode(shown),
                String::from_utf8(base32(shown.as_bytes())).unwrap(),
                shown.bytes().map(|byte| format!("{byte:02x}")).collect(),
            ] {
                let text = redactor.redact_text(&encoded);
                assert!(text.starts_with("[redacted]") && text.len() < 16, "{encoded}: {text}");
            }
        }
        let short = secret.get(..15).unwrap();
        assert_eq!(redactor.redact_text(short), short);
    }

    #[test]
    fn base32_is_that_of_the_standard() {
        for (text, expect) in [("", ""), ("f", "my"), ("foo", "mzxw6"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(text.as_bytes()), expect.as_bytes());
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in [
            "",
            "tok_5ecre",
            "tok_",
            "%",
            "\\",
            "\\u00",
            "\\\\\\",
            "%74",
            "&",
            "&#",
            "&#116",
            "&#x;",
            "tok_5ecret/Ab+9",
            "ü € 😀",
        ] {
            assert_eq!(redact(text), text);
        }
        assert_eq!(Redactor::default().redact_text(SECRET), SECRET);
        assert_eq!(Redactor::new(["short"]).redact_text("short"), "short");
    }

    #[test]
    fn redacted_json_is_json() {
        let check = |secret: &str, value: Value, expect: Value| {
            let text = Bytes::from(value.to_string());
            let redacted = Redactor::new([secret]).redact_json(text);
            assert_eq!(serde_json::from_slice::<Value>(&redacted).unwrap(), expect);
        };
        let echo = json!({"message": format!("no {SECRET}!"), "n": 1, "list": [SECRET, "\\\"", SECRET]});
        check(
            SECRET,
            echo,
            json!({"message": "no [redacted]!", "n": 1, "list": ["[redacted]", "\\\"", "[redacted]"]}),
        );
        check(
            "12345678",
            json!({"at": 12_345_678, "id": "12345678"}),
            json!({"at": 11_111_111, "id": "[redacted]"}),
        );
        // A tab is not the first letter of the secret.
        check(SECRET, json!({"a": "\tok_5ecret/Ab+9~x"}), json!({"a": "\tok_5ecret/Ab+9~x"}));
        check("ab\"cd\\ef/gh", json!({"a": "ab\"cd\\ef/gh"}), json!({"a": "[redacted]"}));
    }

    #[test]
    fn several_secrets_are_redacted_at_a_time() {
        let redactor = Redactor::new(["first_token", "second_token", "first_token_longer"]);
        assert_eq!(
            redactor.redact_text("first_token, SECOND_TOKEN; first_token_longer."),
            "[redacted], [redacted]; [redacted]."
        );
        assert_eq!(format!("{redactor:?}"), "Redactor { .. }");
    }
}
