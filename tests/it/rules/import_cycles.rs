//! Imports between the modules of `src`, and the cycles among them.
//!
//! Reads `use` declarations and qualified paths, follows re-exports to the file that defines an item, and compares the
//! children of each folder: its files, its subfolders, and the items of its own `mod.rs`. Tests of a module, also in `tests.rs`,
//! and `pub use` do not count as imports.

use std::collections::{BTreeMap, BTreeSet};

/// A module by the names on its path; empty for the crate.
type ModulePath = Vec<String>;

/// Children of a folder, each with those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

struct Module {
    /// Paths of `use` declarations and of qualified names.
    paths: Vec<UsedPath>,
    /// Imported and re-exported names with their paths.
    names: BTreeMap<String, Vec<String>>,
}

struct UsedPath {
    segments: Vec<String>,
    is_reexport: bool,
}

/// Returns the cycles of all folders as `FOLDER: CHILD, CHILD`, sorted. `files` are paths below `src` with their contents.
pub(crate) fn import_cycles(files: &[(String, String)]) -> Vec<String> {
    let is_code = |path: &str| !path.ends_with("/tests.rs") && !path.contains("/tests/");
    let modules: BTreeMap<ModulePath, Module> = files
        .iter()
        .filter(|(path, _)| is_code(path))
        .filter_map(|(path, code)| Some((module_path(path)?, Module::parse(code))))
        .collect();
    let mut folders: BTreeMap<ModulePath, Imports> = BTreeMap::new();
    for (from, module) in &modules {
        for used in &module.paths {
            let Some(to) = resolve(&modules, from, &used.segments, 0) else { continue };
            let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            let child = |path: &ModulePath| path.get(shared).cloned().unwrap_or_else(|| "mod.rs".to_owned());
            if child(from) != child(&to) && !(used.is_reexport && from.len() == shared) {
                let imports = folders.entry(from[..shared].to_vec()).or_default();
                imports.entry(child(from)).or_default().insert(child(&to));
            }
        }
    }
    let cycles = folders.iter().flat_map(|(folder, imports)| {
        let folder: Vec<&str> = std::iter::once("src").chain(folder.iter().map(String::as_str)).collect();
        cycles_of(imports).into_iter().map(move |cycle| format!("{}: {cycle}", folder.join("/")))
    });
    cycles.collect()
}

/// Returns the groups of children that import each other.
fn cycles_of(imports: &Imports) -> BTreeSet<String> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|node| (node, reachable(imports, node))).collect();
    let is_mutual = |one: &String, other: &String| {
        reached.get(one).is_some_and(|seen| seen.contains(other))
            && reached.get(other).is_some_and(|seen| seen.contains(one))
    };
    let on_cycles = imports.keys().filter(|node| is_mutual(node, node));
    let group = |node: &String| {
        let members = imports.keys().filter(|other| is_mutual(node, other));
        members.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    on_cycles.map(group).collect()
}

fn reachable<'a>(imports: &'a Imports, start: &'a String) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        open.extend(imports.get(node).into_iter().flatten().filter(|next| seen.insert(*next)));
    }
    seen
}

fn module_path(file: &str) -> Option<ModulePath> {
    let path = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut names: ModulePath = path.split('/').map(str::to_owned).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib")) {
        names.pop();
    }
    (names != ["main"]).then_some(names)
}

/// Returns the module that defines what a path names, or `None` if that is not in this crate.
fn resolve(
    modules: &BTreeMap<ModulePath, Module>,
    from: &ModulePath,
    segments: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let (first, mut rest) = segments.split_first()?;
    let mut at = from.clone();
    match first.as_str() {
        "crate" => at.clear(),
        "self" => {}
        "super" => {
            at.pop()?;
        }
        name => {
            // Without a keyword, a path begins at a submodule or names another crate.
            at.push(name.to_owned());
            if !modules.contains_key(&at) {
                return None;
            }
        }
    }
    while let Some((name, after)) = rest.split_first() {
        if name == "super" {
            at.pop()?;
        } else {
            at.push(name.clone());
            if !modules.contains_key(&at) {
                at.pop();
                let alias = modules.get(&at)?.names.get(name).filter(|_| depth < 8);
                return match alias {
                    Some(alias) => {
                        let path: Vec<String> = alias.iter().chain(after).cloned().collect();
                        resolve(modules, &at, &path, depth + 1)
                    }
                    None => Some(at),
                };
            }
        }
        rest = after;
    }
    Some(at)
}

impl Module {
    fn parse(code: &str) -> Self {
        let words = words(without_tests(code));
        let mut module = Self { paths: Vec::new(), names: BTreeMap::new() };
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let before =
                |back: usize| at.checked_sub(back).and_then(|at| words.get(at)).map_or("", String::as_str);
            let is_visibility = before(1) == "in" && before(2) == "(";
            let is_path = words.get(at + 1).is_some_and(|next| next == "::") && is_name(word);
            // `use<..>` in a type is no declaration.
            if word == "use" && words.get(at + 1).is_some_and(|next| next != "<") {
                let is_reexport = matches!(before(1), "pub" | ")");
                at += 1;
                module.parse_tree(&words, &mut at, &[], is_reexport);
            } else if is_path && before(1) != "::" && !is_visibility {
                let mut segments = vec![word.clone()];
                while words.get(at + 1).is_some_and(|next| next == "::")
                    && words.get(at + 2).is_some_and(|name| is_name(name))
                {
                    segments.push(words[at + 2].clone());
                    at += 2;
                }
                module.paths.push(UsedPath { segments, is_reexport: false });
            }
            at += 1;
        }
        module
    }

    /// Reads a tree of a `use` declaration from the word at `at`, up to the word behind it.
    fn parse_tree(&mut self, words: &[String], at: &mut usize, before: &[String], is_reexport: bool) {
        let mut segments = before.to_vec();
        while let Some(word) = words.get(*at) {
            match word.as_str() {
                "{" => {
                    *at += 1;
                    while words.get(*at).is_some_and(|word| !matches!(word.as_str(), "}" | ";")) {
                        self.parse_tree(words, at, &segments, is_reexport);
                        if words.get(*at).is_some_and(|word| word == ",") {
                            *at += 1;
                        }
                    }
                    *at += 1;
                    return;
                }
                "::" => {}
                "," | ";" | "}" => break,
                "as" => {
                    let name = words.get(*at + 1).cloned().unwrap_or_default();
                    *at += 2;
                    self.names.insert(name, segments.clone());
                    self.paths.push(UsedPath { segments, is_reexport });
                    return;
                }
                // `a::{self}` names `a`, and a glob all that `a` has.
                "self" if !segments.is_empty() => {}
                "*" => {}
                name => segments.push(name.to_owned()),
            }
            *at += 1;
        }
        if let Some(name) = segments.last().cloned() {
            self.names.insert(name, segments.clone());
            self.paths.push(UsedPath { segments, is_reexport });
        }
    }
}

/// Returns the code before the tests of a module.
fn without_tests(code: &str) -> &str {
    let mut length = 0;
    let mut lines = code.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let is_for_tests = line.starts_with("#[cfg(") && line.contains("test");
        if is_for_tests && lines.peek().is_some_and(|next| next.starts_with("mod ")) {
            break;
        }
        length += line.len();
    }
    code.split_at(length).0
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Splits code into names, `::` and single characters, without comments and literals.
fn words(code: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal_length(rest) {
            length
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let end = end.unwrap_or(rest.len());
            words.push(rest.split_at(end).0.to_owned());
            end
        } else if rest.starts_with("::") {
            words.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                words.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = rest.split_at(length).1;
    }
    words
}

/// Returns the length of the string or character that `code` begins with.
fn literal_length(code: &str) -> Option<usize> {
    let unprefixed = code.strip_prefix('b').unwrap_or(code);
    let prefix = code.len() - unprefixed.len();
    if let Some(raw) = unprefixed.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw.trim_start_matches('#').strip_prefix('"')?;
        let end = body.find(&format!("\"{}", "#".repeat(hashes)))?;
        return Some(prefix + 1 + hashes + 1 + end + 1 + hashes);
    }
    let quote = unprefixed.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let mut is_escaped = false;
    for (at, letter) in unprefixed.char_indices().skip(1) {
        if !is_escaped && letter == quote {
            return Some(prefix + at + 1);
        }
        // A lifetime has no closing quotation mark.
        if quote == '\'' && at > 1 && !unprefixed.starts_with("'\\") {
            return None;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    None
}

#[test]
fn cycles_are_found_through_reexports() {
    let files = |files: &[(&str, &str)]| -> Vec<(String, String)> {
        files.iter().map(|(path, code)| (format!("src/{path}"), (*code).to_owned())).collect()
    };
    let cyclic = files(&[
        ("lib.rs", "pub mod a; pub mod b;"),
        (
            "a/mod.rs",
            "mod one; mod two;\npub use one::{One as First, other};\npub(crate) use self::two::Two;",
        ),
        (
            "a/one.rs",
            "use super::{Two};\npub struct One(Two);\nfn f() -> impl Sized + use<'_> { \"use super::x;\"; }",
        ),
        ("a/two.rs", "pub(in crate::a) struct Two;\nfn f() { crate::a::First::new(); 'x'; }"),
        ("b.rs", "use crate::a::First; // crate::b"),
    ]);
    assert_eq!(import_cycles(&cyclic), ["src/a: one, two"]);
    let acyclic = files(&[
        ("lib.rs", "pub mod a; pub mod b;"),
        ("a/mod.rs", "mod one; mod two;\npub use self::one::One;\nuse crate::b::B;"),
        ("a/one.rs", "pub struct One;\n#[cfg(test)]\nmod tests { use crate::a::two::Two; }"),
        ("a/two.rs", "use super::One;\nuse std::{fmt, io};"),
        ("b.rs", "/* use crate::a::One; */ pub struct B;"),
    ]);
    assert_eq!(import_cycles(&acyclic), Vec::<String>::new());
}
