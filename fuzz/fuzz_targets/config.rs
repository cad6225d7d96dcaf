//! Any text as a configuration file, TOML and YAML, is valid or refused with one line that names the place. Adding a
//! source to a valid file and removing it again leaves the settings unchanged.
#![no_main]

use std::path::Path;

use fetchwell::config::{
    ConfigError, FileSettings, NewSource, check_text, refuse_blank, restricted_keys, with_source,
    without_source,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for file in ["/c/fuzz.toml", "/c/fuzz.yaml"] {
        // A lone carriage return ends a line of YAML.
        let lines = 1 + text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
        let file = Path::new(file);
        let settings = check_text(text, file);
        if let Err(error) = &settings {
            check_error(error, lines);
        }
        match restricted_keys(text, file) {
            Ok(keys) => assert!(keys.iter().all(|key| (1..=lines).contains(&key.line))),
            Err(mistake) => {
                assert!(settings.is_err());
                check_error(&ConfigError::Invalid { path: file.to_owned(), mistake }, lines);
            }
        }
        if let Err(error) = refuse_blank(text, file) {
            check_error(&error, lines);
        }
        if let Ok(settings) = settings
            && file.extension().is_some_and(|ending| ending == "toml")
        {
            check_edit(text, &settings, file);
        }
    }
});

fn check_error(error: &ConfigError, lines: usize) {
    assert!(!error.to_string().is_empty());
    if let ConfigError::Invalid { mistake, .. } = error {
        assert!(mistake.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
    }
}

/// Adds a source and removes it again.
fn check_edit(text: &str, settings: &FileSettings, file: &Path) {
    let name = "added-by-the-target".to_owned();
    if settings.sources.iter().any(|source| source.name.as_str() == name) {
        return;
    }
    let source = NewSource { name, store: Some("added.db".to_owned()), ..NewSource::default() };
    // Sources that are listed inline are not edited.
    let Ok(added) = with_source(text, &source) else { return };
    let sources = check_text(&added, file).unwrap().sources;
    assert_eq!(sources.len(), settings.sources.len() + 1);
    let removed = without_source(&added, &source.name).unwrap().unwrap();
    assert_eq!(&check_text(&removed, file).unwrap(), settings);
}
