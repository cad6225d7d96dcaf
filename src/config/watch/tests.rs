//! Tests of files that change in the ways of editors, shells and orchestrators.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::mpsc::{Receiver, channel};

use super::*;

/// Timeout that is long enough for any machine and never reached.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The changes that a watch delivers, in order.
struct Changes {
    news: Receiver<FileChange>,
    _watching: WatchHandle,
}

impl Changes {
    fn watch(path: &Path) -> Self {
        let (send, news) = channel();
        let known = fs::read_to_string(path).unwrap_or_default();
        let watching = watch(path, known, move |noticed| drop(send.send(noticed))).unwrap();
        Self { news, _watching: watching }
    }

    #[track_caller]
    fn text(&self) -> String {
        match self.news.recv_timeout(TIMEOUT) {
            Ok(FileChange::Text { text, .. }) => text,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_way_of_saving_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = at("c.toml");
    fs::write(&file, "one").unwrap();
    let changes = Changes::watch(&file);
    fs::write(&file, "two").unwrap();
    assert_eq!(changes.text(), "two");
    // Atomic replacement, as by `sed -i`, `fetchwell source add` and most editors.
    fs::write(at("c.tmp"), "three").unwrap();
    fs::rename(at("c.tmp"), &file).unwrap();
    assert_eq!(changes.text(), "three");
    // Moving the old file away, as by vim.
    fs::rename(&file, at("c.toml~")).unwrap();
    fs::write(&file, "four").unwrap();
    assert_eq!(changes.text(), "four");
    fs::remove_file(&file).unwrap();
    assert!(matches!(changes.news.recv_timeout(TIMEOUT), Ok(FileChange::Removed)));
    // The same text again is not delivered, but a link with another text is.
    fs::write(&file, "four").unwrap();
    fs::write(at("other"), "five").unwrap();
    fs::remove_file(&file).unwrap();
    symlink("other", &file).unwrap();
    let next = match changes.news.recv_timeout(TIMEOUT).unwrap() {
        FileChange::Removed => changes.text(),
        FileChange::Text { text, .. } => text,
        FileChange::Unreadable(error) => panic!("{error}"),
    };
    assert_eq!(next, "five");
    fs::write(at("other"), "six").unwrap();
    assert_eq!(changes.text(), "six");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let next = match changes.news.recv_timeout(TIMEOUT).unwrap() {
        FileChange::Removed => changes.news.recv_timeout(TIMEOUT).unwrap(),
        other => other,
    };
    assert!(matches!(next, FileChange::Unreadable(_)), "{next:?}");
}

#[test]
fn a_partial_write_is_not_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    fs::write(&path, "one").unwrap();
    let changes = Changes::watch(&path);
    // A watch begins with a read, which on a busy machine could come after the first part.
    fs::write(&path, "two").unwrap();
    assert_eq!(changes.text(), "two");
    let mut file = fs::File::create(&path).unwrap();
    for _ in 0..20 {
        file.write_all(b"part ").unwrap();
        // Closing another file in the folder does not trigger a read.
        fs::write(folder.path().join("beside"), "x").unwrap();
        assert!(changes.news.recv_timeout(SETTLE_TIME * 2).is_err());
    }
    drop(file);
    assert_eq!(changes.text(), "part ".repeat(20));
}

#[test]
fn a_replaced_link_in_the_path_is_followed() {
    // The layout of a mounted Kubernetes ConfigMap.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, text) in [("..1", "one"), ("..2", "two"), ("..3", "three")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("c.yaml"), text).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/c.yaml", at("c.yaml")).unwrap();
    let changes = Changes::watch(&at("c.yaml"));
    for (version, text) in [("..2", "two"), ("..3", "three")] {
        symlink(version, at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_eq!(changes.text(), text);
    }
}

#[test]
fn a_folder_that_is_created_again_is_watched_again() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("c.toml"), "one").unwrap();
    let changes = Changes::watch(&inner.join("c.toml"));
    fs::remove_dir_all(&inner).unwrap();
    assert!(matches!(changes.news.recv_timeout(TIMEOUT), Ok(FileChange::Removed)));
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("c.toml"), "two").unwrap();
    assert_eq!(changes.text(), "two");
    fs::write(inner.join("c.toml"), "three").unwrap();
    assert_eq!(changes.text(), "three");
}
