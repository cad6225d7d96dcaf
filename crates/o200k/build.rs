//! Writes the vocabulary of `o200k`, which tiktoken-rs has, as the tables that `src/vocabulary.rs` reads.
//!
//! A token is a number below the number of tokens:
//!
//! - `bytes`: the bytes of all tokens, one after the other
//! - `starts`: where the bytes of every fourth token start, as little-endian `u32`
//! - `lengths`: a byte for each token: the number of its bytes
//! - `splits`: a byte for each token: the number of bytes of the first of the two tokens that it is merged from; 0 for a
//!   token of one byte
//! - `prefixes`: a byte for each token: the number of bytes of the longest other token that it starts with, or 0
//! - `slots`: a hash table from bytes to their token, with a part of the hash before it (`hash.rs`)
//! - `longest`: a byte for each first two bytes: the length of the longest token that starts with them
//! - `pattern`: the regular expression that cuts a text into pieces, without its look-ahead

#![expect(clippy::disallowed_methods, reason = "cargo tells a build script its folder by the environment")]
#![expect(clippy::indexing_slicing, reason = "a table that is wrong ends the build")]

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

#[expect(dead_code, reason = "`vocabulary.rs` uses more of it")]
#[path = "src/hash.rs"]
mod hash;

#[expect(dead_code, reason = "`vocabulary.rs` uses more of it")]
#[path = "src/token.rs"]
mod token;

/// The end of the expression of `o200k`, and what stands in its place: `Pieces` does what the look-ahead does.
const SPACES: (&str, &str) = (r"|\s+(?!\S)|\s+", r"|\s+");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/hash.rs");
    println!("cargo::rerun-if-changed=src/token.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let encoding = tiktoken_rs::o200k_base()?;
    let tokens: Vec<Vec<u8>> = (0..).map_while(|token| encoding.decode_bytes(&[token]).ok()).collect();
    let ranks: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    if tokens.len() != token::TOKENS {
        return Err(format!("tiktoken-rs has {} tokens instead of {}", tokens.len(), token::TOKENS).into());
    }

    let mut slots = vec![hash::FREE; usize::try_from(hash::SLOTS)?];
    let (mut starts, mut lengths, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut splits, mut longest) = (Vec::new(), vec![1_u8; 1 << 16]);
    let mut start = 0;
    for (token, bytes) in (0_u32..).zip(&tokens) {
        if token % 4 == 0 {
            starts.extend(u32::to_le_bytes(start));
        }
        start += u32::try_from(bytes.len())?;
        insert(&mut slots, hash::with_bytes(hash::EMPTY, bytes), token);
        let len = u8::try_from(bytes.len())?;
        lengths.push(len);
        let prefix = (1..bytes.len()).rev().find(|end| ranks.contains_key(&bytes[..*end]));
        prefixes.push(u8::try_from(prefix.unwrap_or(0))?);
        let middle = split(bytes, &ranks)?;
        splits.push(u8::try_from(middle)?);
        if let [first, second, ..] = bytes.as_slice() {
            // The linear merge of `vocabulary.rs` relies on it.
            let is_earlier = |part: &[u8]| ranks.get(part).is_some_and(|rank| *rank < token);
            if !is_earlier(&bytes[..middle]) || !is_earlier(&bytes[middle..]) {
                return Err(format!("token {token} is not merged from two earlier ones").into());
            }
            let known = &mut longest[usize::from(u16::from_be_bytes([*first, *second]))];
            *known = len.max(*known);
        }
    }
    let tables = [
        ("bytes", tokens.concat()),
        ("starts", starts),
        ("lengths", lengths),
        ("splits", splits),
        ("prefixes", prefixes),
        ("slots", slots.iter().flat_map(|slot| slot.to_le_bytes().into_iter().take(3)).collect()),
        ("longest", longest),
    ];
    for (name, bytes) in tables {
        fs::write(folder.join(format!("o200k.{name}")), bytes)?;
    }
    let pattern = tiktoken_rs::O200K_BASE_PAT_STR.strip_suffix(SPACES.0).ok_or("another expression")?;
    fs::write(folder.join("o200k.pattern"), format!("{pattern}{}", SPACES.1))?;
    Ok(())
}

/// Returns the byte offset between the two tokens that byte pair encoding merges to a token; 0 for a token of one byte.
fn split(token: &[u8], ranks: &HashMap<&[u8], u32>) -> Result<usize, String> {
    let rank = |start: usize, end: usize| ranks.get(&token[start..end]).copied();
    let mut ends: Vec<usize> = (0..=token.len()).collect();
    while ends.len() > 3 {
        let merges = (0..ends.len() - 2).filter_map(|at| Some((rank(ends[at], ends[at + 2])?, at)));
        let (_, at) = merges.min().ok_or_else(|| format!("no merges make {token:?}"))?;
        ends.remove(at + 1);
    }
    Ok(if token.len() == 1 { 0 } else { ends[1] })
}

fn insert(table: &mut [u32], hash: u64, token: u32) {
    let mut slot = hash::slot_of(hash);
    while table[slot] != hash::FREE {
        slot = hash::next_slot(slot);
    }
    table[slot] = hash::tagged(hash, token);
}
