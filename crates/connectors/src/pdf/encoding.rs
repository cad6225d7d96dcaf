//! The texts of glyphs by their names, as fonts of PDF documents have them.

use unicode_normalization::UnicodeNormalization;

/// Names of glyphs that are neither letters, nor letters with an accent.
const NAMES: &[(&str, &str)] = &[
    ("space", " "),
    ("exclam", "!"),
    ("quotedbl", "\""),
    ("numbersign", "#"),
    ("dollar", "$"),
    ("percent", "%"),
    ("ampersand", "&"),
    ("quotesingle", "'"),
    ("parenleft", "("),
    ("parenright", ")"),
    ("asterisk", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("hyphen", "-"),
    ("minus", "−"),
    ("period", "."),
    ("slash", "/"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("colon", ":"),
    ("semicolon", ";"),
    ("less", "<"),
    ("equal", "="),
    ("greater", ">"),
    ("question", "?"),
    ("at", "@"),
    ("bracketleft", "["),
    ("backslash", "\\"),
    ("bracketright", "]"),
    ("asciicircum", "^"),
    ("underscore", "_"),
    ("grave", "`"),
    ("braceleft", "{"),
    ("bar", "|"),
    ("braceright", "}"),
    ("asciitilde", "~"),
    ("exclamdown", "¡"),
    ("cent", "¢"),
    ("sterling", "£"),
    ("currency", "¤"),
    ("yen", "¥"),
    ("brokenbar", "¦"),
    ("section", "§"),
    ("dieresis", "¨"),
    ("copyright", "©"),
    ("ordfeminine", "ª"),
    ("guillemotleft", "«"),
    ("logicalnot", "¬"),
    ("registered", "®"),
    ("macron", "¯"),
    ("degree", "°"),
    ("plusminus", "±"),
    ("twosuperior", "²"),
    ("threesuperior", "³"),
    ("acute", "´"),
    ("mu", "µ"),
    ("paragraph", "¶"),
    ("periodcentered", "·"),
    ("cedilla", "¸"),
    ("onesuperior", "¹"),
    ("ordmasculine", "º"),
    ("guillemotright", "»"),
    ("onequarter", "¼"),
    ("onehalf", "½"),
    ("threequarters", "¾"),
    ("questiondown", "¿"),
    ("AE", "Æ"),
    ("Eth", "Ð"),
    ("multiply", "×"),
    ("Oslash", "Ø"),
    ("Thorn", "Þ"),
    ("germandbls", "ß"),
    ("ae", "æ"),
    ("eth", "ð"),
    ("divide", "÷"),
    ("oslash", "ø"),
    ("thorn", "þ"),
    ("dotlessi", "ı"),
    ("Lslash", "Ł"),
    ("lslash", "ł"),
    ("OE", "Œ"),
    ("oe", "œ"),
    ("florin", "ƒ"),
    ("endash", "–"),
    ("emdash", "—"),
    ("quoteleft", "‘"),
    ("quoteright", "’"),
    ("quotesinglbase", "‚"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotedblbase", "„"),
    ("dagger", "†"),
    ("daggerdbl", "‡"),
    ("bullet", "•"),
    ("ellipsis", "…"),
    ("perthousand", "‰"),
    ("guilsinglleft", "‹"),
    ("guilsinglright", "›"),
    ("fraction", "⁄"),
    ("Euro", "€"),
    ("trademark", "™"),
    ("ff", "ff"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("Alpha", "Α"),
    ("Beta", "Β"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Epsilon", "Ε"),
    ("Zeta", "Ζ"),
    ("Eta", "Η"),
    ("Theta", "Θ"),
    ("Iota", "Ι"),
    ("Kappa", "Κ"),
    ("Lambda", "Λ"),
    ("Mu", "Μ"),
    ("Nu", "Ν"),
    ("Xi", "Ξ"),
    ("Omicron", "Ο"),
    ("Pi", "Π"),
    ("Rho", "Ρ"),
    ("Sigma", "Σ"),
    ("Tau", "Τ"),
    ("Upsilon", "Υ"),
    ("Phi", "Φ"),
    ("Chi", "Χ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("eta", "η"),
    ("theta", "θ"),
    ("theta1", "ϑ"),
    ("iota", "ι"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("omicron", "ο"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("sigma1", "ς"),
    ("tau", "τ"),
    ("upsilon", "υ"),
    ("phi", "φ"),
    ("phi1", "ϕ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("omega1", "ϖ"),
    ("infinity", "∞"),
    ("arrowright", "→"),
    ("arrowleft", "←"),
    ("lessequal", "≤"),
    ("greaterequal", "≥"),
    ("notequal", "≠"),
    ("approxequal", "≈"),
    ("summation", "∑"),
    ("product", "∏"),
    ("radical", "√"),
    ("integral", "∫"),
    ("partialdiff", "∂"),
    ("nbspace", " "),
    ("sfthyphen", "-"),
    ("dotlessj", "ȷ"),
];

/// Combining accents by the ends of glyph names.
const ACCENTS: [(&str, char); 13] = [
    ("acute", '\u{301}'),
    ("grave", '\u{300}'),
    ("circumflex", '\u{302}'),
    ("dieresis", '\u{308}'),
    ("tilde", '\u{303}'),
    ("ring", '\u{30A}'),
    ("cedilla", '\u{327}'),
    ("caron", '\u{30C}'),
    ("ogonek", '\u{328}'),
    ("macron", '\u{304}'),
    ("breve", '\u{306}'),
    ("dotaccent", '\u{307}'),
    ("hungarumlaut", '\u{30B}'),
];

/// Characters of the standard encoding that differ from ASCII, by code.
const STANDARD: [(u8, &str); 51] = [
    (0x27, "’"),
    (0x60, "‘"),
    (0xA1, "¡"),
    (0xA2, "¢"),
    (0xA3, "£"),
    (0xA4, "⁄"),
    (0xA5, "¥"),
    (0xA6, "ƒ"),
    (0xA7, "§"),
    (0xA8, "¤"),
    (0xA9, "'"),
    (0xAA, "“"),
    (0xAB, "«"),
    (0xAC, "‹"),
    (0xAD, "›"),
    (0xAE, "fi"),
    (0xAF, "fl"),
    (0xB1, "–"),
    (0xB2, "†"),
    (0xB3, "‡"),
    (0xB4, "·"),
    (0xB6, "¶"),
    (0xB7, "•"),
    (0xB8, "‚"),
    (0xB9, "„"),
    (0xBA, "”"),
    (0xBB, "»"),
    (0xBC, "…"),
    (0xBD, "‰"),
    (0xBF, "¿"),
    (0xC1, "`"),
    (0xC2, "´"),
    (0xC3, "ˆ"),
    (0xC4, "˜"),
    (0xC5, "¯"),
    (0xC6, "˘"),
    (0xC7, "˙"),
    (0xC8, "¨"),
    (0xCA, "˚"),
    (0xCB, "¸"),
    (0xCD, "˝"),
    (0xCE, "˛"),
    (0xCF, "ˇ"),
    (0xD0, "—"),
    (0xE1, "Æ"),
    (0xE8, "Ł"),
    (0xE9, "Ø"),
    (0xEA, "Œ"),
    (0xF1, "æ"),
    (0xF8, "ł"),
    (0xFA, "œ"),
];

/// Returns the text of a code in the standard encoding of PDF.
pub(super) fn standard_text(code: u8) -> String {
    match STANDARD.iter().find(|(known, _)| *known == code) {
        Some((_, text)) => (*text).to_owned(),
        None if code.is_ascii_graphic() || code == b' ' => char::from(code).to_string(),
        None => String::new(),
    }
}

/// Characters of the font Symbol from code 0x20. A space stands for pieces of brackets, too.
const SYMBOL: &str =
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";

/// Characters of the font Symbol from code 0xA0.
const SYMBOL_ABOVE: &str =
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑           〉∫";

/// Returns the text of a code in the font Symbol, which has an encoding of its own.
pub(super) fn symbol_text(code: u8) -> String {
    let (first, characters) = if code < 0xA0 { (0x20, SYMBOL) } else { (0xA0, SYMBOL_ABOVE) };
    let place = code.checked_sub(first).map(usize::from);
    place.and_then(|place| characters.chars().nth(place)).map(String::from).unwrap_or_default()
}

/// Returns the text of a glyph, or an empty text if its name is unknown.
pub(super) fn glyph_text(name: &str) -> String {
    // `A.sc` is a variant of `A`.
    let name = name.split('.').next().unwrap_or(name);
    if let [letter] = name.as_bytes()
        && letter.is_ascii_graphic()
    {
        return name.to_owned();
    }
    if let Some((_, text)) = NAMES.iter().find(|(known, _)| *known == name) {
        return (*text).to_owned();
    }
    let hex = name.strip_prefix("uni").or_else(|| name.strip_prefix('u'));
    let code = hex.filter(|hex| hex.len() >= 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    if let Some(character) = code.and_then(char::from_u32) {
        return character.to_string();
    }
    let accented = ACCENTS.iter().find_map(|(accent, combining)| {
        let letter = name.strip_suffix(accent).filter(|letter| letter.len() == 1)?;
        Some([letter, combining.encode_utf8(&mut [0; 4])].concat())
    });
    accented.map(|text| text.nfc().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_have_texts() {
        for (name, expect) in [
            ("A", "A"),
            ("A.alt", "A"),
            ("eacute", "é"),
            ("Zcaron", "Ž"),
            ("uni0416", "Ж"),
            ("u1F600", "😀"),
            ("fi", "fi"),
            ("eta", "η"),
            ("space", " "),
            ("g123", ""),
            ("uniZZZZ", ""),
            ("", ""),
        ] {
            assert_eq!(glyph_text(name), expect, "{name}");
        }
        assert_eq!(
            (standard_text(b'\''), standard_text(b'a'), standard_text(0)),
            ("’".into(), "a".into(), String::new())
        );
    }
    #[test]
    fn symbol_has_its_own_encoding() {
        assert_eq!((SYMBOL.chars().count(), SYMBOL_ABOVE.chars().count()), (0x7F - 0x20, 0xF3 - 0xA0));
        for (code, expect) in
            [(b'a', "α"), (b'W', "Ω"), (b'7', "7"), (0xB7, "•"), (0xF2, "∫"), (0, ""), (0xFF, "")]
        {
            assert_eq!(symbol_text(code), expect, "{code}");
        }
    }
}
