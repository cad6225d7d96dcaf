//! Counters of habits of language and form that shared/STYLE.md rules out: each may only fall.

use std::fs;
use std::path::{Path, PathBuf};

/// Words with which a comment does not begin: it begins with a verb or a noun phrase.
const QUESTION_WORDS: [&str; 10] =
    ["What", "Who", "Whose", "Whom", "Where", "How", "Why", "Which", "When", "Whether"];

/// Pronouns that hide the subject of a comment.
const PRONOUNS: [&str; 4] = ["whoever", "nobody", "somebody", "everybody"];

/// Declarations of bounds that are called `max_x` or `min_x` with what they bound.
const BOUND_NAMES: [&str; 10] = [
    " most:",
    "(most:",
    " least:",
    "(least:",
    "_most:",
    "_least:",
    "let most ",
    "let least ",
    "let (most",
    "(most)",
];

/// Comments that begin with a question word.
const MAX_QUESTION_WORDS: usize = 0;
/// Doc comments of fewer than three words: help texts such as "The file".
const MAX_SHORT_DOCS: usize = 15;
/// Comments with a pronoun of `PRONOUNS`.
const MAX_PRONOUNS: usize = 0;
/// Functions called `of`: two helpers of unit tests.
const MAX_OF: usize = 2;

/// Named closures per 10,000 lines.
const MAX_CLOSURES: usize = 77;

/// Counts in some folders. Lower a maximum with each change that lowers its count.
#[derive(Debug, Default)]
struct Counts {
    docs: usize,
    question_words: Vec<String>,
    short_docs: Vec<String>,
    pronouns: Vec<String>,
    tuple_parameters: Vec<String>,
    bound_names: Vec<String>,
    of_constructors: Vec<String>,
    named_closures: Vec<String>,
    lines: usize,
}

impl Counts {
    /// Adds a file.
    fn add(&mut self, name: &str, text: &str) {
        let mut doc: Option<(usize, String, bool)> = None;
        let mut is_after_comment = false;
        for (index, line) in text.lines().chain([""]).enumerate() {
            let place = || format!("{name}:{}: {}", index + 1, line.trim());
            let trimmed = line.trim();
            self.lines += 1;
            let comment = trimmed.strip_prefix("///").or_else(|| trimmed.strip_prefix("//!"));
            match (comment.filter(|_| !trimmed.starts_with("////")), &mut doc) {
                (Some(first), None) => {
                    doc = Some((index + 1, first.trim().to_owned(), first.trim().is_empty()));
                }
                (Some(next), Some((_, paragraph, has_ended))) => {
                    *has_ended |= next.trim().is_empty();
                    if !*has_ended {
                        paragraph.push(' ');
                        paragraph.push_str(next.trim());
                    }
                }
                (None, _) => {
                    if let Some((line, paragraph, _)) = doc.take() {
                        self.add_doc(&format!("{name}:{line}: {paragraph}"), &paragraph);
                    }
                }
            }
            let starts_comment = comment.is_none() && trimmed.starts_with("//") && !is_after_comment;
            is_after_comment = trimmed.starts_with("//");
            if starts_comment && begins_with_question_word(trimmed) {
                self.question_words.push(place());
            }
            if is_after_comment {
                let has_pronoun = words(trimmed).any(|word| PRONOUNS.contains(&&*word.to_lowercase()));
                self.pronouns.extend(has_pronoun.then(place));
                continue;
            }
            let after_fn = trimmed.split_once("fn ").map(|(_, after)| after);
            let is_tuple = after_fn.is_some_and(|after| {
                !after.contains('=')
                    && ["((", ", ("]
                        .iter()
                        .any(|start| after.split_once(start).is_some_and(|(_, inner)| inner.contains("): (")))
            });
            let is_tuple_line =
                trimmed.starts_with('(') && trimmed.contains("): (") && trimmed.ends_with("),");
            self.tuple_parameters.extend((is_tuple || is_tuple_line).then(place));
            let is_constant = trimmed.contains("const ")
                && words(trimmed).any(|word| word.ends_with("_MOST") || word.ends_with("_LEAST"));
            let declares_bound = trimmed
                .split('"')
                .step_by(2)
                .any(|code| BOUND_NAMES.iter().any(|declaration| code.contains(declaration)));
            self.bound_names.extend((is_constant || declares_bound).then(place));
            let is_of = after_fn.is_some_and(|after| after.starts_with("of(") || after.starts_with("of<"));
            self.of_constructors.extend(is_of.then(place));
            let is_closure = trimmed.strip_prefix("let ").is_some_and(|rest| {
                rest.split_once(" = ")
                    .is_some_and(|(_, value)| value.trim_start_matches("move ").starts_with('|'))
            });
            self.named_closures.extend(is_closure.then(place));
        }
    }

    fn add_doc(&mut self, place: &str, paragraph: &str) {
        self.docs += 1;
        if paragraph.split_whitespace().count() < 3 {
            self.short_docs.push(place.to_owned());
        }
        if begins_with_question_word(paragraph) {
            self.question_words.push(place.to_owned());
        }
    }
}

fn begins_with_question_word(comment: &str) -> bool {
    words(comment).next().is_some_and(|first| QUESTION_WORDS.contains(&first))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
}

fn count(folder: &Path, counts: &mut Counts) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            count(&path, counts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            counts.add(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the offenders of a rule, if they are more than the maximum.
fn above(maximum: usize, found: &[String], rule: &str) -> Option<String> {
    (found.len() > maximum)
        .then(|| format!("{} {rule}, more than {maximum}:\n  {}", found.len(), found.join("\n  ")))
}

#[test]
fn habits_that_the_style_rules_out_become_fewer() {
    let mut counts = Counts::default();
    for folder in ["src", "crates"] {
        count(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut counts);
    }
    assert!(counts.docs > 4_000, "{} docs were found", counts.docs);
    let offenders: Vec<String> = [
        above(MAX_QUESTION_WORDS, &counts.question_words, "comments begin with a question word"),
        above(MAX_SHORT_DOCS, &counts.short_docs, "docs have fewer than three words"),
        above(MAX_PRONOUNS, &counts.pronouns, "comments hide their subject"),
        above(0, &counts.tuple_parameters, "parameters are tuples"),
        above(0, &counts.bound_names, "names of bounds are not `max_` or `min_`"),
        above(MAX_OF, &counts.of_constructors, "functions are called `of`"),
        above(MAX_CLOSURES * counts.lines / 10_000, &counts.named_closures, "closures have a name"),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}

#[test]
fn comments_of_tests_begin_with_plain_words() {
    let mut counts = Counts::default();
    for folder in ["tests", "benches", "fuzz/fuzz_targets"] {
        count(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut counts);
    }
    assert!(counts.docs > 500, "{} docs were found", counts.docs);
    let offenders = above(MAX_QUESTION_WORDS, &counts.question_words, "comments begin with a question word");
    assert_eq!(offenders, None);
    assert_eq!(above(MAX_PRONOUNS, &counts.pronouns, "comments hide their subject"), None);
}

#[test]
fn habits_are_counted() {
    let mut counts = Counts::default();
    let text = "//! Whose it is.\n\n/// Yes.\nconst A_MOST: u8 = 1;\n/// A doc of enough words,\n/// and more.\n\
        fn of((a, b): (u8, u8)) {}\nfn f(\n    (a, b): (u8, u8),\n) {}\n// nobody\nlet f = |x| x;\nfn g(most: u8) {}\nlet h = \"let most \";\n// What.\n// What is continued.\nlet g = (1, 2);\n";
    counts.add("f.rs", text);
    let Counts { docs, question_words, short_docs, pronouns, .. } = &counts;
    assert_eq!((*docs, question_words.len(), short_docs.len(), pronouns.len()), (3, 2, 1, 1), "{counts:?}");
    let Counts { tuple_parameters, bound_names, of_constructors, named_closures, .. } = &counts;
    let form = [tuple_parameters, bound_names, of_constructors, named_closures].map(Vec::len);
    assert_eq!(form, [2, 2, 1, 1], "{counts:?}");
}
