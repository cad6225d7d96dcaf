//! Writes the vocabulary of `o200k`, which tiktoken-rs has, as the tables that `src/vocabulary.rs` reads.
//!
//! A token is a number below the number of tokens. All numbers are little-endian, `u32` apart from `parts`:
//!
//! - `bytes`: the bytes of all tokens, one after the other
//! - `starts`: where the bytes of every fourth token start
//! - `parts`: a `u64` for each token (`parts.rs`): the two tokens that it is merged from, the longest one that it starts with
//!   beside itself, and the number of its bytes; a token of one byte has itself three times
//! - `slots`: a hash table from bytes to their token, with a part of the hash before it (`hash.rs`)
//! - `pairs`: a hash table from two adjacent tokens to the token that they are merged to, in the same way
//! - `longest`: a byte for each first two bytes: the length of the longest token that starts with them
//! - `pattern`: the regular expression that cuts a text into pieces, without its look-ahead

#![expect(clippy::disallowed_methods, reason = "cargo tells a build script its folder by the environment")]
#![expect(clippy::indexing_slicing, reason = "a table that is wrong ends the build")]

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[expect(dead_code, reason = "`vocabulary.rs` uses more of it")]
#[path = "src/hash.rs"]
mod hash;

#[expect(dead_code, reason = "`vocabulary.rs` uses more of it")]
#[path = "src/parts.rs"]
mod parts;

use parts::TokenParts;

/// A slot without an entry.
const FREE: u32 = u32::MAX;

/// The end of the expression of `o200k`, and what stands in its place: `Pieces` does what the look-ahead does.
const SPACES: (&str, &str) = (r"|\s+(?!\S)|\s+", r"|\s+");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/hash.rs");
    println!("cargo::rerun-if-changed=src/parts.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let encoding = tiktoken_rs::o200k_base()?;
    let tokens: Vec<Vec<u8>> = (0..).map_while(|token| encoding.decode_bytes(&[token]).ok()).collect();
    let ranks: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    let splits = tokens.iter().map(|token| split(token, &ranks)).collect::<Result<Vec<_>, _>>()?;

    let free = vec![FREE; usize::try_from(hash::SLOTS)?];
    let (mut slots, mut pairs) = (free.clone(), free);
    let (mut starts, mut parts, mut longest) = (Vec::new(), Vec::new(), vec![1_u8; 1 << 16]);
    let mut start = 0;
    for ((token, bytes), (left, right)) in (0_u32..).zip(&tokens).zip(&splits) {
        if token % 4 == 0 {
            starts.push(start);
        }
        start += u32::try_from(bytes.len())?;
        let of_bytes = bytes.iter().fold(hash::EMPTY, |hash, byte| hash::with_byte(hash, *byte));
        insert(&mut slots, of_bytes, token);
        let shorter = (1..bytes.len()).rev().find_map(|end| ranks.get(&bytes[..end]));
        let prefix = *shorter.unwrap_or(&token);
        let len = u8::try_from(bytes.len())?;
        parts.extend(TokenParts { left: *left, right: *right, prefix, len }.packed().to_le_bytes());
        if let [first, second, ..] = bytes.as_slice() {
            // The linear merge of `vocabulary.rs` relies on it.
            if *left >= token || *right >= token {
                return Err(format!("token {token} is merged from later ones").into());
            }
            let of_pair = hash::of_pair(*left, *right);
            insert(&mut pairs, of_pair, token);
            let known = &mut longest[usize::from(u16::from_be_bytes([*first, *second]))];
            *known = len.max(*known);
        }
    }
    fs::write(folder.join("o200k.bytes"), tokens.concat())?;
    fs::write(folder.join("o200k.parts"), parts)?;
    fs::write(folder.join("o200k.longest"), longest)?;
    for (name, numbers) in [("starts", starts), ("slots", slots), ("pairs", pairs)] {
        write(&folder.join(format!("o200k.{name}")), &numbers)?;
    }
    let pattern = tiktoken_rs::O200K_BASE_PAT_STR.strip_suffix(SPACES.0).ok_or("another expression")?;
    fs::write(folder.join("o200k.pattern"), format!("{pattern}{}", SPACES.1))?;
    Ok(())
}

/// Returns the two tokens that a token is merged from, as byte pair encoding merges its bytes.
fn split(token: &[u8], ranks: &HashMap<&[u8], u32>) -> Result<(u32, u32), String> {
    let rank = |start: usize, end: usize| ranks.get(&token[start..end]).copied();
    let mut ends: Vec<usize> = (0..=token.len()).collect();
    while ends.len() > 3 {
        let merges = (0..ends.len() - 2).filter_map(|at| Some((rank(ends[at], ends[at + 2])?, at)));
        let (_, at) = merges.min().ok_or_else(|| format!("no merges make {token:?}"))?;
        ends.remove(at + 1);
    }
    let middle = ends[1];
    let parts = if token.len() == 1 {
        (rank(0, 1), rank(0, 1))
    } else {
        (rank(0, middle), rank(middle, token.len()))
    };
    match parts {
        (Some(left), Some(right)) => Ok((left, right)),
        _ => Err(format!("no two tokens make {token:?}")),
    }
}

fn insert(table: &mut [u32], of_key: u64, token: u32) {
    let mut slot = hash::slot_of(of_key);
    while table[slot] != FREE {
        slot = hash::next_slot(slot);
    }
    table[slot] = hash::tagged(of_key, token);
}

fn write(path: &Path, numbers: &[u32]) -> Result<(), std::io::Error> {
    fs::write(path, numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}
