//! The parts of a ZIP container, within limits.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::super::skips::Problem;
use super::super::text_input::decode;

/// Maximum size of a part in bytes.
const MAX_PART_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum size of all parts that are read, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum number of parts.
const MAX_PARTS: usize = 20_000;

/// An opened container.
pub(super) struct Package {
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// Number of bytes that may still be read.
    left: u64,
}

impl Package {
    /// Opens a container.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, Problem> {
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| format!("its container is broken: {error}"))?;
        if archive.len() > MAX_PARTS {
            return Err(Problem::too_large(format!("it has more than {MAX_PARTS} parts")));
        }
        Ok(Self { archive, left: MAX_BYTES })
    }

    /// Reads a part as text. Returns `None` if there is none.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let name = name.trim_start_matches('/');
        let part = match self.archive.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(problem)) if problem.contains("assword") => {
                return Err(Problem::encrypted("it is encrypted"));
            }
            Err(error) => return Err(format!("its part {name} is broken: {error}").into()),
        };
        let max_bytes = self.left.min(MAX_PART_BYTES);
        let mut bytes = Vec::new();
        part.take(max_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("its part {name} is broken: {error}"))?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        if bytes.len() as u64 > max_bytes {
            return Err(Problem::too_large(format!("its parts are larger than {MAX_PART_BYTES} bytes")));
        }
        decode(bytes).map(Some).ok_or_else(|| format!("its part {name} is not text").into())
    }

    /// Reads a part that must exist.
    pub(super) fn require(&mut self, name: &str) -> Result<String, Problem> {
        self.read(name)?.ok_or_else(|| format!("it has no part {name}").into())
    }
}

/// Returns the name of a part that another part refers to, relative to the folder of that part.
pub(super) fn resolve(from: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_relative_to_each_other() {
        for (from, target, expect) in [
            ("ppt/presentation.xml", "slides/slide1.xml", "ppt/slides/slide1.xml"),
            ("ppt/slides/slide1.xml", "../notesSlides/n.xml", "ppt/notesSlides/n.xml"),
            ("a.opf", "/b/c.xhtml", "b/c.xhtml"),
            ("a.opf", "../../x", "x"),
        ] {
            assert_eq!(resolve(from, target), expect);
        }
    }
}
