//! Files that change as editors, shells and orchestrators change them.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::mpsc::{Receiver, channel};

use super::*;

/// Long enough for any machine; nothing waits for it to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is told of a file, in order.
struct Told {
    news: Receiver<Noticed>,
    _watching: Watching,
}

impl Told {
    fn of(path: &Path) -> Self {
        let (send, news) = channel();
        let known = fs::read_to_string(path).unwrap_or_default();
        let watching = watch(path, known, move |noticed| drop(send.send(noticed))).unwrap();
        Self { news, _watching: watching }
    }

    #[track_caller]
    fn text(&self) -> String {
        match self.news.recv_timeout(PATIENCE) {
            Ok(Noticed::Text { text, .. }) => text,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_way_to_save_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = at("c.toml");
    fs::write(&file, "one").unwrap();
    let told = Told::of(&file);
    fs::write(&file, "two").unwrap();
    assert_eq!(told.text(), "two");
    // As `sed -i`, `fetchwell source add` and most editors do.
    fs::write(at("c.tmp"), "three").unwrap();
    fs::rename(at("c.tmp"), &file).unwrap();
    assert_eq!(told.text(), "three");
    // As vim does.
    fs::rename(&file, at("c.toml~")).unwrap();
    fs::write(&file, "four").unwrap();
    assert_eq!(told.text(), "four");
    fs::remove_file(&file).unwrap();
    assert!(matches!(told.news.recv_timeout(PATIENCE), Ok(Noticed::Removed)));
    // The same again is no news, a link in its place is.
    fs::write(&file, "four").unwrap();
    fs::write(at("other"), "five").unwrap();
    fs::remove_file(&file).unwrap();
    symlink("other", &file).unwrap();
    let next = match told.news.recv_timeout(PATIENCE).unwrap() {
        Noticed::Removed => told.text(),
        Noticed::Text { text, .. } => text,
        Noticed::Unreadable(error) => panic!("{error}"),
    };
    assert_eq!(next, "five");
    fs::write(at("other"), "six").unwrap();
    assert_eq!(told.text(), "six");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let next = match told.news.recv_timeout(PATIENCE).unwrap() {
        Noticed::Removed => told.news.recv_timeout(PATIENCE).unwrap(),
        other => other,
    };
    assert!(matches!(next, Noticed::Unreadable(_)), "{next:?}");
}

#[test]
fn half_a_file_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    fs::write(&path, "one").unwrap();
    let told = Told::of(&path);
    let mut file = fs::File::create(&path).unwrap();
    for _ in 0..20 {
        file.write_all(b"part ").unwrap();
        // Something else that is closed beside it tempts nobody to look.
        fs::write(folder.path().join("beside"), "x").unwrap();
        assert!(told.news.recv_timeout(SETTLED * 2).is_err());
    }
    drop(file);
    assert_eq!(told.text(), "part ".repeat(20));
}

#[test]
fn a_link_that_is_swapped_in_the_way_is_followed() {
    // As Kubernetes mounts a ConfigMap.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, text) in [("..1", "one"), ("..2", "two"), ("..3", "three")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("c.yaml"), text).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/c.yaml", at("c.yaml")).unwrap();
    let told = Told::of(&at("c.yaml"));
    for (version, text) in [("..2", "two"), ("..3", "three")] {
        symlink(version, at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_eq!(told.text(), text);
    }
}

#[test]
fn a_folder_that_comes_back_is_watched_again() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("c.toml"), "one").unwrap();
    let told = Told::of(&inner.join("c.toml"));
    fs::remove_dir_all(&inner).unwrap();
    assert!(matches!(told.news.recv_timeout(PATIENCE), Ok(Noticed::Removed)));
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("c.toml"), "two").unwrap();
    assert_eq!(told.text(), "two");
    fs::write(inner.join("c.toml"), "three").unwrap();
    assert_eq!(told.text(), "three");
}
