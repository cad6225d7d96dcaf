//! A strict parser of Prometheus' text format (0.0.4): every deviation from the specification is an error.

use std::collections::{BTreeMap, BTreeSet};

/// Samples by their name with labels as written, of a valid exposition.
pub(crate) struct Scrape {
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    #[track_caller]
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut samples = BTreeMap::new();
        let mut families = BTreeSet::new();
        let (mut helped, mut family, mut kind) = (None, String::new(), String::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, about) = help.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                assert!(is_name(name, true) && !about.is_empty(), "{line}");
                helped = Some(name.to_owned());
            } else if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (name, of) = typed.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
                assert_eq!(helped.take().as_deref(), Some(name), "HELP and TYPE stand together: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&of), "{line}");
                assert!(families.insert(name.to_owned()), "twice: {line}");
                // `promtool check metrics` reports counters without this suffix.
                assert_eq!(of == "counter", name.ends_with("_total"), "{line}");
                (family, kind) = (name.to_owned(), of.to_owned());
            } else {
                let (name, labels, value) = sample(line);
                let suffix = name.strip_prefix(&family).unwrap_or_else(|| panic!("of no family: {line}"));
                let suffixes: &[&str] =
                    if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(suffixes.contains(&suffix), "{line}");
                let names: BTreeSet<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
                assert_eq!(names.len(), labels.len(), "a label twice: {line}");
                assert_eq!(names.contains("le"), suffix == "_bucket", "{line}");
                assert!(kind != "counter" || value >= 0.0, "{line}");
                let before = samples.insert(line.rsplit_once(' ').unwrap().0.to_owned(), value);
                assert!(before.is_none(), "twice: {line}");
            }
        }
        assert!(helped.is_none(), "HELP without TYPE");
        let scrape = Self { samples };
        scrape.check_buckets(text);
        scrape
    }

    /// Returns a sample by its name with labels as written.
    #[track_caller]
    pub(crate) fn value(&self, sample: &str) -> f64 {
        *self.samples.get(sample).unwrap_or_else(|| panic!("no sample {sample}"))
    }

    /// Returns the sum of all samples with this prefix of name and labels.
    pub(crate) fn sum(&self, start: &str) -> f64 {
        self.samples.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, value)| value).sum()
    }

    /// Checks that buckets grow, and that the last one is the count.
    fn check_buckets(&self, text: &str) {
        let mut before = 0.0;
        for line in text.lines().filter(|line| line.contains("le=\"")) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap();
            assert!(value >= before, "{line}");
            before = value;
            if name.contains("le=\"+Inf\"") {
                let labels = name.replace("le=\"+Inf\"", "").replace(",}", "}").replace("{}", "");
                assert_eq!(self.value(&labels.replacen("_bucket", "_count", 1)), value, "{line}");
                before = 0.0;
            }
        }
    }
}

fn is_name(name: &str, with_colon: bool) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || c == '_' || (with_colon && c == ':');
    !name.is_empty() && name.chars().all(usual) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Splits a sample into name, labels and value.
fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name, true), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
            assert!(is_name(label, false), "{line}");
            let (mut text, mut length, mut escaped) = (String::new(), None, false);
            for (at, c) in value.char_indices() {
                match (escaped, c) {
                    (false, '\\') => escaped = true,
                    (true, '\\' | '"' | 'n') => {
                        text.push(c);
                        escaped = false;
                    }
                    (true, _) => panic!("no escape: {line}"),
                    (false, '"') => {
                        length = Some(at);
                        break;
                    }
                    (false, _) => text.push(c),
                }
            }
            labels.push((label.to_owned(), text));
            let length = length.unwrap_or_else(|| panic!("no end of a label: {line}"));
            rest = value.split_at(length + 1).1;
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').unwrap_or_else(|| panic!("no end of labels: {line}"));
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line}"));
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
}
