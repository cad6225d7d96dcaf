//! Texts with OpenPGP in them (RFC 9580): what is signed stays as text, and what only a program can read is named.

use std::borrow::Cow;

/// Text in the place of an encrypted message.
pub(super) const ENCRYPTED: &str = "[Encrypted with OpenPGP. To search its text, decrypt it in the program that has the key and import it again]";

/// Start of the first line of every block.
const BEGIN: &str = "-----BEGIN PGP ";

/// Line before a text that is signed.
const SIGNED: &str = "-----BEGIN PGP SIGNED MESSAGE-----";

/// A kind of block, with the text that takes its place.
struct Block {
    name: &'static str,
    shown: &'static str,
}

/// The blocks that only a program can read.
const BLOCKS: [Block; 4] = [
    Block { name: "SIGNATURE", shown: "" },
    Block { name: "MESSAGE", shown: ENCRYPTED },
    Block { name: "PUBLIC KEY BLOCK", shown: "[OpenPGP: a public key]" },
    Block { name: "PRIVATE KEY BLOCK", shown: "[OpenPGP: a private key]" },
];

/// Returns a text without the blocks of OpenPGP that only a program can read.
pub(in super::super) fn without_armor(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(BEGIN) {
        return text;
    }
    let mut written = String::with_capacity(text.len());
    let mut lines = text.lines();
    // True within a text that is signed.
    let mut is_signed = false;
    // Blocks without a last line in the rest of the text, which is searched once for each.
    let mut endless = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim_end() == SIGNED {
            // The algorithm stands above an empty line. Without one, the line is one of the text.
            let mut after = lines.clone();
            if after.find(|line| !is_header(line)).is_some_and(|line| line.trim().is_empty()) {
                is_signed = true;
                lines = after;
                continue;
            }
        }
        let block = BLOCKS.iter().find(|block| is_line(line, "BEGIN", block.name));
        let block = block.filter(|block| !endless.contains(&block.name));
        let shown = match block {
            Some(block) => {
                let before_block = lines.clone();
                if !lines.any(|line| is_line(line, "END", block.name)) {
                    // A line of the text looks like a block.
                    lines = before_block;
                    endless.push(block.name);
                    line
                } else if block.shown.is_empty() {
                    is_signed = false;
                    continue;
                } else {
                    block.shown
                }
            }
            // Lines that begin with a hyphen are marked in a text that is signed.
            None => line.strip_prefix("- ").filter(|_| is_signed).unwrap_or(line),
        };
        written.push_str(shown);
        written.push('\n');
    }
    Cow::Owned(written)
}

/// Returns true for a header such as `Hash: SHA256`.
fn is_header(line: &str) -> bool {
    let name = line.split_once(": ").map(|(name, _)| name).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns true for the first (`BEGIN`) or the last (`END`) line of a block.
fn is_line(line: &str, edge: &str, name: &str) -> bool {
    let inner = line.trim_end().strip_prefix("-----").and_then(|rest| rest.strip_suffix("-----"));
    let words = inner.and_then(|inner| inner.strip_prefix(edge)).and_then(|rest| rest.strip_prefix(" PGP "));
    words == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_text_is_read_and_blocks_are_named() {
        let signed = "Above\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nOne\n- -- two\n- three\n-----BEGIN PGP \
             SIGNATURE-----\n\niQEz\n=abc\n-----END PGP SIGNATURE-----\n- below\n";
        let key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ\n-----END PGP PUBLIC KEY BLOCK-----\n";
        let message = "Hi\r\n-----BEGIN PGP MESSAGE-----\r\n\r\nhQ\r\n-----END PGP MESSAGE-----\r\nBye\r\n";
        for (text, expect) in [
            (signed, "Above\nOne\n-- two\nthree\n- below\n"),
            (key, "[OpenPGP: a public key]\n"),
            (message, &format!("Hi\n{}\nBye\n", ENCRYPTED)),
            ("It says -----BEGIN PGP MESSAGE----- there\n", "It says -----BEGIN PGP MESSAGE----- there\n"),
            ("-----BEGIN PGP MESSAGE-----\nno end\n", "-----BEGIN PGP MESSAGE-----\nno end\n"),
            ("no block", "no block"),
            (
                "-----BEGIN PGP SIGNED MESSAGE-----\nstands above:\n- one\n\n- two\n",
                "-----BEGIN PGP SIGNED MESSAGE-----\nstands above:\n- one\n\n- two\n",
            ),
            ("-----BEGIN PGP SIGNED MESSAGE-----\n\nNo hash\n\n- - x\n", "No hash\n\n- x\n"),
        ] {
            assert_eq!(without_armor(Cow::Borrowed(text)), expect, "{text}");
        }
    }

    #[test]
    fn endless_blocks_take_linear_time() {
        for name in ["MESSAGE", "SIGNATURE", "SIGNED MESSAGE", "PUBLIC KEY BLOCK"] {
            crate::measured::assert_linear(5_000, &|count| {
                let text = format!("-----BEGIN PGP {name}-----\n").repeat(count);
                assert!(without_armor(Cow::Borrowed(&text)).len() <= text.len());
            });
        }
    }
}
