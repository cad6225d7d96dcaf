//! Rules of structure and documents that a test can check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::import_cycles::import_cycles;
use crate::support::{demo_store, text};

/// Packages of others in `Cargo.lock`: those of every platform, of the tests, the benches and the fuzz targets. CHANGELOG.md
/// gives the reason for a higher number.
const MAX_LOCKED_PACKAGES: usize = 542;

/// Maximum number of files side by side in a folder.
const MAX_FILES: usize = 16;

/// Maximum number of lines of a file with production code.
const MAX_LINES: usize = 500;

/// Maximum length of a line of Markdown in characters, except in tables and code.
const MARKDOWN_WIDTH: usize = 160;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths of the Rust files below a folder, relative to the root, with `/`.
fn rust_files(folder: &str) -> Vec<String> {
    let mut folders = vec![root().join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(relative(&path));
            }
        }
    }
    assert!(!files.is_empty(), "no Rust files below {folder}");
    files.sort();
    files
}

/// Returns the paths of the files with production code: those of the program and of all crates.
fn production_files() -> Vec<String> {
    let mut files = rust_files("src");
    for name in crates() {
        files.extend(rust_files(&format!("crates/{name}/src")));
    }
    files
}

/// Returns the names of the folders in `crates`, sorted.
fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() > 10, "{names:?}");
    names.sort();
    names
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/")
}

/// Asserts that there are no offenders, and lists all of them otherwise.
#[track_caller]
fn none(offenders: impl IntoIterator<Item = String>, rule: &str) {
    let offenders: Vec<String> = offenders.into_iter().collect();
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

#[test]
fn every_file_has_a_module_comment() {
    let mut offenders = Vec::new();
    for folder in ["src", "crates", "tests", "benches", "fuzz/fuzz_targets"] {
        let lacks_comment =
            |file: &String| !read(file).trim_start_matches("#![no_main]\n").starts_with("//! ");
        offenders.extend(rust_files(folder).into_iter().filter(lacks_comment));
    }
    none(offenders, "files without a module comment on their first line");
}

#[test]
fn files_are_short_and_have_specific_names() {
    let mut offenders = Vec::new();
    for file in production_files() {
        let lines = read(&file).lines().count();
        if lines > MAX_LINES {
            offenders.push(format!("{file}: {lines} lines"));
        }
        let stem = Path::new(&file).file_stem().unwrap().to_str().unwrap();
        if ["util", "utils", "helper", "helpers", "common", "misc"].contains(&stem) {
            offenders.push(format!("{file}: its name says nothing about its content"));
        }
    }
    none(offenders, "files that are too long or have generic names");
}

#[test]
fn module_headers_list_their_files() {
    let files = production_files();
    let mut offenders = Vec::new();
    for (folder, file) in files.iter().filter_map(|path| path.rsplit_once('/')) {
        if !["mod.rs", "lib.rs"].contains(&file) {
            continue;
        }
        let text = read(format!("{folder}/{file}"));
        let header: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let children: BTreeSet<&str> = files
            .iter()
            .filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/')?.split(['/', '.']).next())
            .filter(|child| !["mod", "lib", "main", "tests"].contains(child))
            .collect();
        let is_listed =
            |child: &str| header.contains(&format!("`{child}`")) || header.contains(&format!("`{child}/`"));
        let unlisted = children.into_iter().filter(|child| !is_listed(child));
        offenders.extend(unlisted.map(|child| format!("{folder}/{child}")));
    }
    none(offenders, "files and folders that the header of their mod.rs or lib.rs does not list");
}

#[test]
fn folders_have_few_files() {
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    for file in production_files().into_iter().chain(rust_files("tests")) {
        let (folder, _name) = file.rsplit_once('/').unwrap();
        *files.entry(folder.to_owned()).or_default() += 1;
    }
    let full = files.into_iter().filter(|(_folder, count)| *count > MAX_FILES);
    none(full.map(|(folder, count)| format!("{folder}: {count} files")), "folders that need subfolders");
}

/// Crates of the workspace. Each depends only on those before it.
const CRATES: [&str; 20] = [
    "heap",
    "o200k",
    "core",
    "outbound",
    "state",
    "callers",
    "embedding",
    "telemetry",
    "source",
    "ranking",
    "conformance",
    "sqlite",
    "postgres",
    "pdpp",
    "upstream",
    "connectors",
    "lab",
    "tools",
    "mcp",
    "http",
];

/// Folders with the modules that their files must not use. Between crates, the compiler checks that.
const FORBIDDEN_MODULES: &[(&str, &str)] = &[
    ("crates/core/src/handle/", "serde_json|crate::record|crate::fit"),
    ("crates/core/src/record/", "crate::fit"),
    ("crates/core/src/fit/", "crate::handle"),
    ("crates/state/src/redis/", "crate::cursor"),
    ("crates/callers/src/authenticate/", "fetchwell_core::handle"),
    ("crates/tools/src/documents/", "crate::toolbox|crate::registry"),
    ("crates/postgres/", "fetchwell_sqlite"),
    ("crates/connectors/", "fetchwell_sqlite|fetchwell_postgres|fetchwell_pdpp"),
    (
        "crates/tools/",
        "fetchwell_connectors|fetchwell_pdpp|fetchwell_lab|fetchwell_sqlite|fetchwell_postgres",
    ),
    ("crates/mcp/", "fetchwell_pdpp|fetchwell_connectors"),
    ("crates/http/", "fetchwell_pdpp|fetchwell_connectors|fetchwell_sqlite|fetchwell_postgres"),
    ("src/app/", "crate::cli"),
    ("src/config/", "crate::app|crate::cli"),
];

#[test]
fn crates_depend_on_earlier_ones_and_say_so() {
    let mut sorted = CRATES.map(str::to_owned);
    sorted.sort();
    assert_eq!(crates(), sorted);
    let mut offenders = Vec::new();
    for (number, name) in CRATES.iter().enumerate() {
        let manifest = read(format!("crates/{name}/Cargo.toml"));
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        let used = dependencies.lines().filter_map(|line| line.strip_prefix("fetchwell-"));
        let used = used.map(|line| line.split([' ', '.']).next().unwrap());
        let is_earlier = |used: &&str| CRATES[..number].contains(used);
        let header = read(format!("crates/{name}/src/lib.rs"));
        let header: String = header.lines().take_while(|line| line.starts_with("//!")).collect();
        let (_, named) = header.split_once("//! Uses ").unwrap_or_default();
        let is_named = |used: &&str| named.contains(&format!("`{used}`"));
        let offends = |used: &&str| !is_earlier(used) || !is_named(used);
        offenders.extend(used.filter(offends).map(|used| format!("{name} uses {used}")));
    }
    none(
        offenders,
        "crates that depend on later ones, or on ones that their lib.rs does not name after `Uses`",
    );
}

#[test]
fn modules_use_only_what_they_may() {
    // Each row has a word, the files that may contain it, and the reason.
    let words = [
        (
            "rmcp",
            vec!["crates/mcp/", "crates/upstream/", "crates/telemetry/"],
            "only mcp and upstream use the protocol library (telemetry filters its logs)",
        ),
        ("axum::", vec!["crates/http/"], "only http serves HTTP"),
        (
            "reqwest",
            vec!["crates/outbound/", "crates/pdpp/", "crates/upstream/", "crates/callers/src/authenticate/"],
            "only record servers, MCP servers and authorization servers are called over HTTP",
        ),
        (
            "rusqlite",
            vec!["crates/sqlite/", "crates/state/", "crates/telemetry/", "crates/connectors/src/sqlite.rs"],
            "only the SQLite store, the state directory, cursors, telemetry and the reader of databases use SQLite",
        ),
        ("tokio_postgres", vec!["crates/postgres/"], "only its store uses PostgreSQL"),
        ("tantivy", vec!["crates/sqlite/"], "only the SQLite store uses its index"),
        ("print!(", vec![], "stdout belongs to the protocol"),
        ("println!(", vec![], "stdout belongs to the protocol"),
        ("anstream::", vec!["crates/core/src/terminal/"], "terminal escapes all text"),
        (
            "io::stdout",
            vec!["crates/core/src/terminal/", "crates/mcp/src/stdio.rs"],
            "terminal escapes all text",
        ),
        ("io::stderr", vec!["crates/core/src/terminal/"], "terminal escapes all text"),
        (".print()", vec![], "terminal escapes arguments that clap quotes"),
        (
            "ProgressBar",
            vec!["src/cli/import/", "src/cli/rejections/", "src/cli/embeddings/"],
            "a progress bar prints no text of records",
        ),
    ];
    let mut offenders = Vec::new();
    for file in production_files() {
        let whole = read(&file);
        // Tests of a module may use other modules.
        let code = whole.split("#[cfg(test)]").next().unwrap();
        let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        for (word, allowed, reason) in &words {
            if code.contains(word) && !allowed.iter().any(|path| file.starts_with(path)) {
                offenders.push(format!("{file} has `{word}`: {reason}"));
            }
        }
        let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
        for (module, forbidden) in FORBIDDEN_MODULES {
            for word in forbidden.split('|').filter(|_| !is_test && file.starts_with(*module)) {
                if code.contains(word) {
                    offenders.push(format!("{file} has `{word}`, which {module} must not use"));
                }
            }
        }
    }
    none(offenders, "modules that use what they must not");
}

#[test]
fn folders_have_no_import_cycles() {
    let with_code = |file: String| {
        let code = read(&file);
        (file, code)
    };
    let mut cycles = Vec::new();
    for folder in crates().iter().map(|name| format!("crates/{name}/")).chain([String::new()]) {
        let files = rust_files(&format!("{folder}src")).into_iter().map(&with_code);
        let below = |(path, code): (String, String)| (path.replacen(&folder, "", 1), code);
        let files: Vec<(String, String)> = files.map(below).collect();
        cycles.extend(import_cycles(&files).into_iter().map(|cycle| format!("{folder}{cycle}")));
    }
    none(cycles, "import cycles; move what both sides import into a file of its own");
}

/// Files outside of `fit` that cut text, with the reason.
const OTHER_CUTS: &[(&str, &str)] = &[
    ("crates/embedding/", "input of a model, which ends where its tokens end"),
    ("crates/core/src/record/field_path.rs", "a quotation in an error, in a module that must not use `fit`"),
    ("crates/ranking/src/lexical/matching/mod.rs", "pieces of a text that a scan reads one after the other"),
    ("crates/postgres/src/sort_key.rs", "bytes in an index, whose form must not change"),
];

#[test]
fn only_fit_truncates_text() {
    let cuts = [".chars().take(", "floor_char_boundary(", "char_indices().nth("];
    let mut offenders = Vec::new();
    for file in production_files() {
        let is_other = OTHER_CUTS.iter().any(|(place, _reason)| file.starts_with(place));
        if is_other || file.starts_with("crates/core/src/fit/") || file.ends_with("/tests.rs") {
            continue;
        }
        let text = read(&file);
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let is_cut = |(_, line): &(usize, &str)| cuts.iter().any(|cut| line.contains(cut));
        let cut = production.lines().enumerate().filter(is_cut);
        offenders.extend(cut.map(|(number, line)| format!("{file}:{}: {}", number + 1, line.trim())));
    }
    none(offenders, "text that is cut without `fit::first_characters`, `fit::first_bytes` or `fit::clip`");
}

/// Sources around another source. Each implements every method, because a default would hide the other source's.
const SOURCE_DECORATORS: [&str; 4] = [
    "crates/source/src/lazy_source.rs",
    "crates/source/src/allowed_streams/mod.rs",
    "crates/source/src/federation/guarded.rs",
    "crates/source/src/federation/single.rs",
];

#[test]
fn decorators_forward_every_method_of_a_source() {
    let code = read("crates/source/src/lib.rs");
    let (_, declaration) = code.split_once("pub trait Source").unwrap();
    let methods = declaration.lines().take_while(|line| *line != "}").filter_map(|line| {
        let line = line.trim_start();
        let signature = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))?;
        signature.split('(').next()
    });
    let methods: Vec<&str> = methods.collect();
    assert!(methods.len() >= 10, "{methods:?}");
    let mut offenders = Vec::new();
    for file in SOURCE_DECORATORS {
        let code = read(file);
        let (_, implementation) = code.split_once("\nimpl Source for ").unwrap();
        let implementation = implementation.split("\n}\n").next().unwrap();
        let lacks = |method: &&&str| !implementation.contains(&format!("fn {method}("));
        offenders.extend(methods.iter().filter(lacks).map(|method| format!("{file}: {method}")));
    }
    none(offenders, "methods of `Source` that are not forwarded");
}

#[test]
fn architecture_describes_every_folder() {
    let map = read("ARCHITECTURE.md");
    assert!(map.lines().count() <= 150, "ARCHITECTURE.md has {} lines", map.lines().count());
    let real: BTreeSet<String> = production_files().into_iter().collect();
    let folders = real
        .iter()
        .filter_map(|file| file.strip_prefix("src/")?.split_once('/'))
        .map(|(folder, _)| format!("`src/{folder}/`"));
    let folders = folders.chain(crates().into_iter().map(|name| format!("`crates/{name}/`")));
    let undescribed: BTreeSet<String> = folders.filter(|folder| !map.contains(folder)).collect();
    none(undescribed, "crates and folders that ARCHITECTURE.md does not describe");
    none(files_in_the_map(&map).difference(&real).cloned(), "modules in ARCHITECTURE.md that do not exist");
    none(stale_paths("ARCHITECTURE.md"), "paths in ARCHITECTURE.md that do not exist");
}

/// Returns the files that the code map names: below a heading with a folder, every quoted name ending in `.rs`.
fn files_in_the_map(map: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut folder = None;
    for line in map.lines() {
        if line.starts_with('#') {
            let path = line.split('`').nth(1).unwrap_or_default();
            folder = match path.split('/').next() {
                Some("crates") => Some(format!("{path}src/")),
                Some("src") => Some(path.to_owned()),
                _ => None,
            };
        }
        for word in line.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")) {
            if let Some(folder) = &folder {
                named.insert(format!("{folder}{word}"));
            }
        }
    }
    named
}

#[test]
fn links_and_paths_of_documents_exist() {
    let mut offenders = Vec::new();
    let mut documents = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "CHANGELOG.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(relative(&path));
        }
    }
    for document in &documents {
        offenders.extend(stale_paths(document));
        offenders.extend(stale_links(document));
    }
    none(offenders, "links, anchors and paths that do not exist");
}

#[test]
fn lines_of_documents_are_short() {
    let mut documents: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "packaging/README.md"]
            .map(str::to_owned)
            .into();
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| relative(&entry.unwrap().path()));
    documents.extend(docs.filter(|path| path.ends_with(".md")));
    let mut offenders = Vec::new();
    for document in &documents {
        let mut is_code = false;
        for (number, line) in (1..).zip(read(document).lines()) {
            is_code ^= line.trim_start().starts_with("```");
            let is_exempt = is_code || line.starts_with('|') || line.starts_with("<!--");
            if !is_exempt && line.chars().count() > MARKDOWN_WIDTH {
                offenders.push(format!("{document}:{number}"));
            }
        }
    }
    none(offenders, "lines of more than 160 characters outside tables and code");
}

/// Returns the paths in backticks that begin with a folder of the repository and do not exist.
fn stale_paths(document: &str) -> Vec<String> {
    let folders =
        ["src/", "crates/", "tests/", "fixtures/", "benches/", "fuzz/", "docs/", "snapshots/", ".ci/"];
    let written = read(document);
    let quoted = written.split('`').skip(1).step_by(2);
    quoted
        .filter(|word| folders.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '*']))
        .filter(|path| !root().join(path).exists())
        .map(|path| format!("{document}: {path}"))
        .collect()
}

/// Returns the relative links of a document that lead to no file, or to no heading of a Markdown file.
fn stale_links(document: &str) -> Vec<String> {
    let folder = root().join(document).parent().map(Path::to_path_buf).unwrap();
    let written = read(document);
    let links = written.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_stale = |link: &&str| {
        let (path, anchor) =
            link.split_once('#').map_or((*link, None), |(path, anchor)| (path, Some(anchor)));
        let target = if path.is_empty() { root().join(document) } else { folder.join(path) };
        !target.exists() || anchor.is_some_and(|anchor| !anchors(&read(target)).contains(anchor))
    };
    links
        .filter(|link| !link.contains("://"))
        .filter(is_stale)
        .map(|link| format!("{document}: {link}"))
        .collect()
}

/// Returns the anchors of the headings of a Markdown text, as GitHub derives them.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in markdown.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let level = line.len() - line.trim_start_matches('#').len();
        let Some(heading) = line.get(level..).and_then(|rest| rest.strip_prefix(' ')) else { continue };
        if is_code || level == 0 {
            continue;
        }
        let kept = heading.to_lowercase().replace(' ', "-");
        let kept = kept.replace(|letter: char| !(letter.is_alphanumeric() || "-_".contains(letter)), "");
        // A repeated heading gets a number.
        let repeated = (1..).map(|number| format!("{kept}-{number}"));
        let free = [kept.clone()].into_iter().chain(repeated).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn anchors_follow_headings() {
    let text = "# One: `two` (3)!\n## A\n```\n# code\n```\n## A\n#no\n";
    let expect = ["one-two-3", "a", "a-1"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expect));
}

#[tokio::test]
async fn readme_and_tool_list_agree() {
    let (_folder, store) = demo_store();
    let model = crate::support::Model::over_stdio(["--store", text(&store)]).await;
    let listed: BTreeSet<String> = model.tools().await.iter().map(|tool| tool.name.to_string()).collect();
    let written: BTreeSet<String> = read("README.md")
        .lines()
        .skip_while(|line| *line != "## Tools")
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned()))
        .collect();
    assert_eq!(written, listed, "the table under README's `## Tools` against tools/list");
}

#[test]
fn readme_names_every_command() {
    let readme = read("README.md");
    let help = String::from_utf8(crate::support::fetchwell(["--help"]).stdout).unwrap();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() >= 9, "{help}");
    let unnamed = names.iter().filter(|name| !readme.contains(&format!("fetchwell {name}")));
    none(unnamed.map(ToString::to_string), "commands that README.md does not show");
}

#[test]
fn error_codes_of_routes_are_known_to_telemetry() {
    let (mut offenders, mut seen) = (Vec::new(), 0);
    for file in rust_files("crates/http/src") {
        let code: String = read(&file).split_whitespace().collect();
        let refusals = code
            .split("RequestError::")
            .skip(1)
            .filter(|call| ["new(", "bad("].iter().any(|made| call.starts_with(made)));
        let other = code.split("Refusal::new(").skip(1);
        let refusals =
            refusals.chain(other.filter(|call| call.starts_with("Status") || call.starts_with("status")));
        // The first text of the call is its code, unless that is a variable.
        let codes = refusals.filter_map(|call| {
            let (before, rest) = call.split_once('"')?;
            (!before.contains([')', ';'])).then(|| rest.split('"').next().unwrap_or_default().to_owned())
        });
        let codes: Vec<String> = codes.collect();
        seen += codes.len();
        let is_unknown = |code: &String| fetchwell_telemetry::Outcome::of_code(code).as_str() != code;
        offenders.extend(codes.into_iter().filter(is_unknown).map(|code| format!("{file}: {code}")));
    }
    assert!(seen >= 10, "only {seen} codes were found");
    none(offenders, "codes that crates/telemetry/src/outcome.rs does not know");
}

#[test]
fn dependencies_stay_below_the_ceiling() {
    let packages = read("Cargo.lock").lines().filter(|line| line.starts_with("source = ")).count();
    assert!(
        packages <= MAX_LOCKED_PACKAGES,
        "{packages} packages in Cargo.lock, {MAX_LOCKED_PACKAGES} allowed"
    );
}

#[test]
fn no_file_names_the_folder_beside_the_clone() {
    let mut offenders = Vec::new();
    let shared_folder = ["..", "shared"].join("/");
    for folder in ["src", "crates", "tests", "benches", "fuzz/fuzz_targets"] {
        offenders.extend(rust_files(folder).into_iter().filter(|file| read(file).contains(&shared_folder)));
    }
    offenders.extend(
        ["Cargo.toml", ".ci/run", "README.md"]
            .into_iter()
            .filter(|file| read(file).contains(&shared_folder))
            .map(str::to_owned),
    );
    none(offenders, "files that use files outside the repository");
}

#[test]
fn lints_are_not_allowed_silently() {
    let offenders = production_files().into_iter().filter(|file| {
        let code = read(file);
        code.contains("#[allow(") || code.contains("#![allow(") || code.contains("#[ignore]")
    });
    none(offenders, "files with `allow` or with `ignore` without a reason; use `expect` with a reason");
}

#[test]
fn usual_files_exist() {
    let missing: Vec<String> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE",
        ".ci/run",
        "docs/benchmarks.md",
        "docs/decisions.md",
    ]
    .into_iter()
    .filter(|file| !root().join(file).exists())
    .map(str::to_owned)
    .collect();
    none(missing, "files that are missing");
}
