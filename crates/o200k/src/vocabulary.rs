//! The vocabulary of `o200k`, and how many of its tokens a piece of a text is.
//!
//! `build.rs` writes the tables from tiktoken-rs, and they are read where they are in the binary: nothing is loaded, and
//! only the pages that are read take memory. The parts of a token and the token of two tokens are computed from the tables
//! at first use, and cached in at most 2.1 MB; `docs/decisions.md` compares this with tables of them.
//!
//! Byte pair encoding merges the two adjacent tokens with the lowest number first. `tokens_of` gets the same tokens in
//! linear time: it takes the longest token that starts a text, and a shorter one where the merges would not leave these
//! two tokens side by side (the algorithm of the crate `bpe`).

use super::hash;
use super::merges::MergeCache;
use super::parts::{self, TokenParts};

const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bytes"));
const STARTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.starts"));
const LENGTHS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.lengths"));
const SPLITS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.splits"));
const PREFIXES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.prefixes"));
const SLOTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.slots"));
const LONGEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.longest"));

static MERGES: MergeCache = MergeCache::new();

/// The length of the longest token, in bytes.
const MAX_BYTES: usize = 128;

/// Counts the tokens of a piece of a text: a word, a number or what stands between them.
pub(super) fn tokens_of(piece: &[u8]) -> usize {
    if piece.len() <= 1 || (piece.len() <= MAX_BYTES && token_of(piece).is_some()) {
        return piece.len().min(1);
    }
    merged(piece)
}

/// Counts the tokens that the bytes of a piece are merged to.
fn merged(piece: &[u8]) -> usize {
    let mut tokens: Vec<u32> = Vec::new();
    // Places where no token can end, which are not tried again.
    let mut is_dead = vec![false; piece.len() + 1];
    let mut at = 0;
    let mut next = longest(piece);
    // Repetitive texts ask for the same pairs repeatedly.
    let mut known = [(u32::MAX, u32::MAX, false); 64];
    let mut stay_apart = |left: u32, right: u32| {
        let Some(known) = known.get_mut(index(left ^ right.rotate_left(3)) % 64) else { return false };
        if (known.0, known.1) != (left, right) {
            *known = (left, right, stay_apart(left, right));
        }
        known.2
    };
    while let Some(mut token) = next {
        let last = tokens.last().copied();
        loop {
            let end = at + len_of(token);
            let is_possible = is_dead.get(end) == Some(&false);
            if is_possible && last.is_none_or(|last| stay_apart(last, token)) {
                tokens.push(token);
                at = end;
                next = longest(piece.get(at..).unwrap_or_default());
                break;
            }
            let shorter = parts_of(token).prefix;
            if shorter != token {
                token = shorter;
                continue;
            }
            // No token goes on from here, so the last one is a shorter one.
            if let Some(dead) = is_dead.get_mut(at) {
                *dead = true;
            }
            next = tokens.pop();
            at -= next.map_or(0, len_of);
            break;
        }
    }
    tokens.len()
}

/// Returns whether merges leave two tokens side by side: no earlier merge joins the end of one with the start of the other.
fn stay_apart(left: u32, right: u32) -> bool {
    let (mut left, mut right, mut limit) = (left, right, u32::MAX);
    loop {
        if merge_of(left, right).is_some_and(|token| token < limit) {
            return false;
        }
        let (end, start) = (split_of(left).1, split_of(right).0);
        // Undoes the later of the merges that made the two. A token of one byte was not merged.
        if end == left && start == right {
            return true;
        }
        if end != left && (left > right || start == right) {
            (left, limit) = (end, left);
        } else {
            (right, limit) = (start, right + 1);
        }
    }
}

/// Returns the longest token that a text starts with; none for an empty text.
fn longest(text: &[u8]) -> Option<u32> {
    let max_bytes = match text {
        [first, second, ..] => {
            let pair = usize::from(u16::from_be_bytes([*first, *second]));
            LONGEST.get(pair).map_or(1, |longest| usize::from(*longest)).min(text.len())
        }
        _ => text.len(),
    };
    match max_bytes {
        0..=16 => longest_within::<16>(text, max_bytes),
        _ => longest_within::<MAX_BYTES>(text, max_bytes),
    }
}

/// Returns the longest token of at most `max_bytes` bytes that a text starts with; none for an empty text.
fn longest_within<const BYTES: usize>(text: &[u8], max_bytes: usize) -> Option<u32> {
    let mut hashes = [hash::EMPTY; BYTES];
    let mut hash = hash::EMPTY;
    for (slot, byte) in hashes.iter_mut().zip(text.iter().take(max_bytes)) {
        hash = hash::with_byte(hash, *byte);
        *slot = hash;
    }
    (1..=max_bytes).rev().find_map(|length| find(*hashes.get(length - 1)?, text.get(..length)?))
}

/// Returns the token of some bytes.
fn token_of(bytes: &[u8]) -> Option<u32> {
    find(hash::with_bytes(hash::EMPTY, bytes), bytes)
}

fn find(hash: u64, bytes: &[u8]) -> Option<u32> {
    look_up(hash, |token| bytes_of(token) == bytes)
}

/// Returns the token that two adjacent tokens are merged to.
fn merge_of(left: u32, right: u32) -> Option<u32> {
    MERGES.merge_of(left, right, || find_merge(left, right))
}

/// Looks up the token that has the bytes of two tokens and is merged from these.
fn find_merge(left: u32, right: u32) -> Option<u32> {
    let (left, right) = (bytes_of(left), bytes_of(right));
    let hash = hash::with_bytes(hash::with_bytes(hash::EMPTY, left), right);
    look_up(hash, |token| {
        length_in(SPLITS, token) == left.len() && bytes_of(token).strip_prefix(left) == Some(right)
    })
}

fn look_up(hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
    let mut slot = hash::slot_of(hash);
    loop {
        match SLOTS.as_chunks().0.get(slot).map_or(hash::FREE, |bytes| hash::content_of_bytes(*bytes)) {
            hash::FREE => return None,
            tagged => {
                let token = hash::untagged(tagged);
                if hash::tagged(hash, token) == tagged && is_it(token) {
                    return Some(token);
                }
                slot = hash::next_slot(slot);
            }
        }
    }
}

/// Returns the two tokens that a token is merged from: twice itself for a token of one byte.
fn split_of(token: u32) -> (u32, u32) {
    let TokenParts { left, right, .. } = parts_of(token);
    (left, right)
}

fn parts_of(token: u32) -> TokenParts {
    parts::cached(token, || find_parts(token))
}

/// Looks up the tokens that a token consists of.
fn find_parts(token: u32) -> TokenParts {
    let bytes = bytes_of(token);
    let (left, right) = bytes.split_at_checked(length_in(SPLITS, token)).unwrap_or_default();
    let prefix = bytes.get(..length_in(PREFIXES, token)).unwrap_or_default();
    let or_itself = |part: &[u8]| token_of(part).unwrap_or(token);
    TokenParts { left: or_itself(left), right: or_itself(right), prefix: or_itself(prefix) }
}

fn bytes_of(token: u32) -> &'static [u8] {
    let first = token - token % 4;
    let before: usize = (first..token).map(len_of).sum();
    let start =
        STARTS.as_chunks().0.get(index(first / 4)).map_or(u32::MAX, |start| u32::from_le_bytes(*start));
    let start = index(start) + before;
    BYTES.get(start..start + len_of(token)).unwrap_or_default()
}

fn len_of(token: u32) -> usize {
    length_in(LENGTHS, token)
}

fn length_in(table: &'static [u8], token: u32) -> usize {
    table.get(index(token)).copied().map_or(0, usize::from)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
