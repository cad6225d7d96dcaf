//! Tests of the reader of RTF.

use super::*;

fn text(rtf: &str) -> String {
    rtf_document(rtf.as_bytes()).unwrap().text
}

#[test]
fn text_is_decoded_in_the_code_page_of_its_font() {
    for (rtf, expect) in [
        (
            r"{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}}\f0\fs24 The \b rich\b0  text says \'fcber ibis.\par Second.}",
            "The rich text says über ibis.\nSecond.",
        ),
        (r"{\rtf1\ansi\ansicpg1251 \'cf\'f0\'e8\'e2\'e5\'f2}", "Привет"),
        (r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 A;}{\f1\fcharset204 B;}}\f1 \'cf\'f0\f0 \'cf}", "ПрÏ"),
        (r"{\rtf1\ansi\ansicpg932 \'93\'fa\'96{\b \'7b}}", "日�{"),
        (r"{\rtf1\ansi\ansicpg932 \'93\'fa\'96\'7b}", "日本"),
        (r"{\rtf1\mac caf\'8e}", "café"),
        (r"{\rtf1\ansi\ansicpg1252 über {\b 5} €{\b , \'c3\'bc}}", "über 5 €, Ã¼"),
        (r"{\rtf1\uc1 \u8364?5 \uc0\u-10179\u-8704 x}", "€5 😀x"),
        (r"{\rtf1\uc2 \u26085\'93\'fa{\uc0 \u26412}!}", "日本!"),
        (r"{\rtf1 {\upr{Lost?}{\*\ud{Found \u8364?}}}}", "Found €"),
        (r"{\rtf1 a\emdash b\~c\_d\-e\{f\}\\\line g\tab h}", "a—b\u{A0}c-de{f}\\\ng\th"),
        ("{\\rtf1 one\\\ntwo\r\nthree}", "one\ntwothree"),
        (r"{\rtf1 cut \'f", "cut f"),
        (r"{\rtf1 {open", "open"),
        (r"{\rtf1 a}} b{", "a"),
    ] {
        assert_eq!(text(rtf), expect, "{rtf}");
    }
}

#[test]
fn only_shown_text_is_read() {
    for (rtf, expect) in [
        (
            r"{\rtf1{\colortbl;\red0;}{\stylesheet{\s0 Normal;}}{\*\generator Word;}a{\v secret}b{\deleted gone}}",
            "ab",
        ),
        (r"{\rtf1 {\pict\bin3 }}}}after}", "after"),
        (r"{\rtf1 \bin999999999 lost", ""),
        (r"{\rtf1 {\field{\*\fldinst HYPERLINK x}{\fldrslt the link}}}", "the link"),
        (r"{\rtf1 {\shp{\*\shpinst{\sp{\sn a}{\sv b}}{\shptxt in a box}}{\shprslt twice}}}", "in a box"),
        (
            r"{\rtf1{\header Top}{\headerf Top}Text{\footnote A note}.{\*\annotation A remark}}",
            "Text.\n\nTop\nA note\nA remark",
        ),
        (r"{\rtf1 a\cell b\cell\row c\cell d\cell\row}", "a\tb\nc\td"),
        (
            r"{\rtf1\fromhtml1{\*\htmltag <b>}\htmlrtf {\b\htmlrtf0 bold\htmlrtf }\htmlrtf0{\*\htmltag </b>}}",
            "bold",
        ),
    ] {
        assert_eq!(text(rtf), expect, "{rtf}");
    }
    assert!(rtf_document("{\\rtf1".repeat(2_000).as_bytes()).unwrap_err().contains("nested more than 1000"));
    assert!(rtf_document(b"no RTF").is_err());
}

#[test]
fn properties_are_read() {
    let rtf = r"{\rtf1{\info{\title The t\'e9al}{\author Ann}{\keywords a, b;c}{\creatim\yr2024\mo1\dy2\hr3\min4}}x}";
    let document = rtf_document(rtf.as_bytes()).unwrap();
    assert_eq!((document.title.as_str(), document.created.as_str()), ("The téal", "2024-01-02 03:04"));
    assert_eq!(
        (document.keywords.as_slice(), document.authors.as_slice()),
        (&["a", "b", "c"].map(str::to_owned)[..], &["Ann".to_owned()][..])
    );
}
