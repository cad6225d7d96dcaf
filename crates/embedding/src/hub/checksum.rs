//! Checksums of files, as a hub states them.

use fetchwell_core::hex::hexadecimal;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use sha2::{Digest, Sha256};

/// A checksum in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checksum {
    /// The SHA-256 of a file in large file storage.
    Sha256(String),
    /// The id of a file in git: the SHA-1 of its size and content.
    GitBlob(String),
}

impl Checksum {
    /// Returns the checksum of a text: 64 digits are a SHA-256, 40 digits the id of a git blob.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.len() {
            _ if !text.bytes().all(is_digit) => None,
            64 => Some(Self::Sha256(text.to_owned())),
            40 => Some(Self::GitBlob(text.to_owned())),
            _ => None,
        }
    }

    /// Returns its first digits, for the name of a part.
    pub(super) fn short(&self) -> &str {
        let (Self::Sha256(digits) | Self::GitBlob(digits)) = self;
        digits.get(..16).unwrap_or(digits)
    }
}

/// Computes the checksums of a file while it is read or written.
pub(super) struct Hasher {
    sha256: Sha256,
    git: Context,
}

/// The checksums of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checksums {
    /// SHA-256 in hexadecimal digits.
    pub(super) sha256: String,
    git: String,
}

impl Hasher {
    /// Creates a hasher of a file of this many bytes, which the id in git depends on.
    pub(super) fn new(bytes: u64) -> Self {
        let mut git = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        git.update(format!("blob {bytes}\0").as_bytes());
        Self { sha256: Sha256::new(), git }
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        self.sha256.update(piece);
        self.git.update(piece);
    }

    pub(super) fn finish(self) -> Checksums {
        Checksums {
            sha256: hexadecimal(&self.sha256.finalize()),
            git: hexadecimal(self.git.finish().as_ref()),
        }
    }
}

impl Checksums {
    /// Returns true if the file has a stated checksum.
    pub(super) fn matches(&self, stated: &Checksum) -> bool {
        match stated {
            Checksum::Sha256(digits) => self.sha256 == *digits,
            Checksum::GitBlob(digits) => self.git == *digits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_git_and_of_large_file_storage() {
        let mut hasher = Hasher::new(6);
        hasher.update(b"hel");
        hasher.update(b"lo\n");
        let sums = hasher.finish();
        // `printf 'hello\n' | git hash-object --stdin`, and `sha256sum`.
        for (stated, expect) in [
            ("ce013625030ba8dba906f756967f9e9ca394464a", true),
            ("5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", true),
            ("ce013625030ba8dba906f756967f9e9ca394464b", false),
            ("5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be04", false),
        ] {
            assert_eq!(sums.matches(&Checksum::parse(stated).unwrap()), expect, "{stated}");
        }
        for text in ["", "../../etc/passwd", &"g".repeat(40), &"A".repeat(64), &"a".repeat(41)] {
            assert_eq!(Checksum::parse(text), None, "{text}");
        }
    }
}
