//! Any table, JSON file, file of record envelopes, output of `git log` and day of Slack is imported, or rejected with a
//! reason: no import panics, and none ends with an error other than that the file is of another kind or lacks a named column.
#![no_main]

mod support;

use std::path::Path;

use fetchwell_connectors::{
    FieldNames, ImportError, import_content, import_csv, import_git_log, import_json, import_records,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, content)) = input.split_first() else { return };
    let (path, mut reader) = (Path::new("fuzz"), content);
    let common = FieldNames::default();
    let named = FieldNames {
        key: vec!["a".to_owned(), "b.c".to_owned()],
        title: Some("b".to_owned()),
        time: Some("c".to_owned()),
        url: Some("d".to_owned()),
    };
    // Add new ones at the end, so that the corpus keeps its meaning.
    let outcome = support::import(|intake| match first % 7 {
        0 => import_csv(reader, path, "rows", &common, intake),
        1 => import_csv(reader, path, "rows", &named, intake),
        2 => import_json(reader, path, "items", &common, intake),
        3 => import_json(reader, path, "items", &named, intake),
        4 => import_records(&mut reader, path, intake),
        5 => import_git_log(&mut reader, path, intake),
        _ => import_content("general/2026-04-01.json", content, intake),
    });
    match outcome {
        Ok(())
        | Err(ImportError::WrongKind { .. } | ImportError::Nothing { .. } | ImportError::NoColumn { .. }) => {
        }
        Err(error) => panic!("{error}"),
    }
});
