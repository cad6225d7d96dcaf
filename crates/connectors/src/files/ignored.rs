//! Files and folders that an import of a folder leaves out: what `.gitignore` names, and folders that programs generate
//! or copy there.
//!
//! A folder that the user named is read whatever its name. Names that people use, too, such as `build` and `vendor`,
//! count only beside the file of the program that makes them.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use walkdir::DirEntry;

use super::super::skips::SkipReason;

/// Name of the files with rules.
const RULES_FILE: &str = ".gitignore";

/// Maximum bytes of such a file that are read.
const MAX_RULES_BYTES: u64 = 1024 * 1024;

/// Names of folders that programs make.
const GENERATED: [&str; 5] =
    ["node_modules", "bower_components", "jspm_packages", "__pycache__", "site-packages"];

/// Files that mark the folder they are in as generated: a cache, and a virtual environment of Python.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

/// Names of folders that programs make beside one of these files.
const GENERATED_BESIDE: [(&str, &[&str]); 6] = [
    ("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    ("vendor", &["go.mod", "composer.json", "Cargo.toml", "Gemfile"]),
    ("dist", BUILD_FILES),
    ("build", BUILD_FILES),
    ("out", BUILD_FILES),
    ("Pods", &["Podfile"]),
];

/// Files of programs that write a folder for what they built.
const BUILD_FILES: &[&str] = &[
    "package.json",
    "pyproject.toml",
    "setup.py",
    "Cargo.toml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
];

/// The rules at a place in the walk of a folder.
pub(super) struct IgnoreRules {
    /// Folder of the walk, and the same folder in canonical form.
    root: PathBuf,
    canonical: PathBuf,
    /// Rules of the folders around the place, the innermost last, each with the depth of its folder.
    layers: Vec<(usize, Gitignore)>,
}

impl IgnoreRules {
    /// Reads the rules of the folders around a folder in a repository.
    pub(super) fn new(root: &Path) -> Self {
        let canonical = fs::canonicalize(root).unwrap_or_else(|_unreadable| root.to_owned());
        let outer: Vec<&Path> = canonical.ancestors().collect();
        // The folder itself is read with the walk.
        let top = outer.iter().position(|folder| folder.join(".git").exists()).unwrap_or_default();
        let outer = outer.into_iter().take(top + 1).skip(1);
        let mut layers: Vec<_> = outer.filter_map(read_rules).map(|rules| (0, rules)).collect();
        layers.reverse();
        Self { root: root.to_owned(), canonical, layers }
    }

    /// Returns the reason why an entry of the walk is left out. Entries are asked in the order of the walk.
    pub(super) fn skip_reason(&mut self, entry: &DirEntry) -> Option<SkipReason> {
        let (depth, is_folder) = (entry.depth(), entry.file_type().is_dir());
        let within = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
        let path = self.canonical.join(within);
        if depth > 0 {
            // Those of folders that the walk has left.
            self.layers.retain(|(layer, _)| *layer < depth);
            if is_folder && is_generated(&path) {
                return Some(SkipReason::Generated);
            }
            if self.is_named(&path, is_folder) {
                return Some(SkipReason::Gitignore);
            }
        }
        if is_folder {
            self.layers.extend(read_rules(&path).map(|rules| (depth, rules)));
        }
        None
    }

    /// Returns true if the innermost rule for a path leaves it out.
    fn is_named(&self, path: &Path, is_folder: bool) -> bool {
        for (_, rules) in self.layers.iter().rev() {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// Reads the rules of a folder. Rules that cannot be parsed are passed over, as Git does.
fn read_rules(folder: &Path) -> Option<Gitignore> {
    let file = folder.join(RULES_FILE);
    if !file.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(MAX_RULES_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut rules = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        let _ = rules.add_line(None, line);
    }
    rules.build().ok()
}

/// Returns true for a folder that a program made, such as `node_modules`. An import of the folder around it leaves it out.
#[must_use]
pub fn is_generated(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let beside = GENERATED_BESIDE.iter().find(|(known, _)| *known == name);
    let is_beside = |files: &&[&str]| files.iter().any(|file| folder.with_file_name(file).is_file());
    GENERATED.contains(&name)
        || beside.is_some_and(|(_, files)| is_beside(files))
        || MARKS.iter().any(|mark| folder.join(mark).is_file())
}

#[cfg(test)]
mod tests {
    use walkdir::WalkDir;

    use super::*;

    /// Writes files, and returns those that the rules leave below a folder.
    fn kept(place: &Path, files: &[(&str, &str)], root: &str) -> Vec<String> {
        for (name, content) in files {
            let file = place.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let root = place.join(root);
        let mut rules = IgnoreRules::new(&root);
        let walk = WalkDir::new(&root)
            .sort_by_file_name()
            .into_iter()
            .filter_entry(|entry| rules.skip_reason(entry).is_none());
        let files = walk.map(|entry| entry.unwrap()).filter(|entry| entry.file_type().is_file());
        let names = files.map(|entry| entry.path().strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
        names.filter(|name| !name.ends_with(RULES_FILE)).collect()
    }

    #[test]
    fn rules_of_all_folders_around_a_file_count() {
        let place = tempfile::tempdir().unwrap();
        let files = [
            (".git/HEAD", ""),
            (".gitignore", "*.log\n/private/\n!keep.log\n[\n"),
            ("a.log", ""),
            ("a.md", ""),
            ("private/b.md", ""),
            ("sub/private/c.md", ""),
            ("sub/.gitignore", "*.md\n!d.md\n"),
            ("sub/d.md", ""),
            ("sub/e.md", ""),
            ("sub/keep.log", ""),
            ("sub/x.log", ""),
            ("top/e.md", ""),
        ];
        assert_eq!(
            kept(place.path(), &files, ""),
            [".git/HEAD", "a.md", "sub/d.md", "sub/keep.log", "top/e.md"]
        );
        assert_eq!(kept(place.path(), &[], "sub"), ["d.md", "keep.log"]);
        // A folder that the user named.
        assert_eq!(kept(place.path(), &[], "private"), ["b.md"]);
    }

    #[test]
    fn generated_folders_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let files = [
            ("app/package.json", ""),
            ("app/node_modules/x/readme.md", ""),
            ("app/dist/a.js", ""),
            ("app/env/pyvenv.cfg", ""),
            ("app/env/a.py", ""),
            ("app/cache/CACHEDIR.TAG", ""),
            ("app/vendor/offer.md", ""),
            ("office/vendor/offer.md", ""),
            ("office/build/plan.md", ""),
            ("office/target/goals.md", ""),
        ];
        let expect = [
            "app/package.json",
            "app/vendor/offer.md",
            "office/build/plan.md",
            "office/target/goals.md",
            "office/vendor/offer.md",
        ];
        assert_eq!(kept(place.path(), &files, ""), expect);
        assert_eq!(kept(place.path(), &[], "app/node_modules"), ["x/readme.md"]);
    }
}
