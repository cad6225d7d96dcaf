//! Removal of the values of one kind that begin with a mark, such as the cached answers of a project.
//!
//! Keys are read with `SCAN` and deleted with `UNLINK`, a bounded number with each command, so that other commands of the
//! server are answered in between. Values without the mark, and those of another type, are left.

use std::collections::BTreeSet;

use redis::Cmd;

use super::connection::RedisState;
use super::error::RedisError;

const UNLINK_MARKED: &str = include_str!("unlink_marked.lua");

/// Number of keys of the database that one `SCAN` reads.
const KEYS_AT_ONCE: usize = 500;

/// Maximum number of values that one command deletes.
const VALUES_AT_ONCE: usize = 100;

/// Values of one kind.
#[derive(Debug, Clone, Copy)]
pub struct MarkedValues<'a> {
    /// Kind of the values.
    pub kind: &'static str,
    /// Start of their names.
    pub name_start: &'a str,
    /// Marks of which each value begins with one. They have the same length.
    pub marks: &'a [String],
}

impl RedisState {
    /// Deletes values, and returns their names.
    ///
    /// # Errors
    ///
    /// The server cannot be used. Some values may be deleted.
    pub async fn remove(&self, values: MarkedValues<'_>) -> Result<BTreeSet<String>, RedisError> {
        let MarkedValues { kind, name_start, marks } = values;
        let (kind_start, start) = (self.key(kind, ""), self.key(kind, name_start));
        let pattern = format!("{}*", glob_escaped(&start));
        let mut removed = BTreeSet::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = Cmd::new();
            scan.arg("SCAN").arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(KEYS_AT_ONCE);
            let (next, keys): (u64, Vec<Vec<u8>>) = self.run(&scan).await?;
            for keys in keys.chunks(VALUES_AT_ONCE) {
                let mut unlink = Cmd::new();
                unlink.arg("EVAL").arg(UNLINK_MARKED).arg(keys.len()).arg(keys).arg(marks);
                let deleted: Vec<String> = self.run(&unlink).await?;
                removed.extend(
                    deleted.iter().filter_map(|key| key.strip_prefix(&kind_start)).map(str::to_owned),
                );
            }
            if next == 0 {
                return Ok(removed);
            }
            cursor = next;
        }
    }
}

/// Returns a pattern of Redis that matches a text alone.
fn glob_escaped(text: &str) -> String {
    let escaped = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\').then_some('\\');
    text.chars().flat_map(|c| escaped(c).into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_patterns_are_escaped() {
        for (text, expect) in [
            ("fetchwell:fraim:handbook:v", "fetchwell:fraim:handbook:v"),
            ("team:*", r"team:\*"),
            ("a?[b-c]", r"a\?\[b-c\]"),
            (r"a\b", r"a\\b"),
            ("docs-2_é", "docs-2_é"),
        ] {
            assert_eq!(glob_escaped(text), expect, "{text}");
        }
    }
}
