//! Archives with hostile content.

use std::io::{Cursor, Read, Write};

use ::zip::ZipWriter;
use ::zip::write::SimpleFileOptions;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::item::{Item, ReadError};
use super::*;

fn item(path: &str, bytes: Vec<u8>) -> Item<'static> {
    Item::from_reader(path.to_owned(), None, Box::new(Cursor::new(bytes))).unwrap()
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn gzip_of(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Returns the paths with the contents or reasons of a ZIP archive's entries, and the result.
fn entries(archive: Vec<u8>, limits: &ArchiveLimits) -> (Vec<(String, String)>, Result<(), ReadError>) {
    let mut seen = Vec::new();
    let result = zip_entries(item("a.zip", archive), limits, &mut |entry| {
        seen.push(match entry {
            Entry::File(mut item) => {
                let text = item.read_text().unwrap_or_else(|problem| problem.text);
                (item.path.clone(), text)
            }
            Entry::Rejected(path, problem) => (path, problem.text),
        });
        Ok(())
    });
    (seen, result)
}

#[test]
fn names_that_lead_out_of_an_archive_are_rejected() {
    for name in ["../a", "a/../../b", "/etc/passwd", "..\\a", "C:\\a", "\\a"] {
        assert!(entry_path("x.zip", name).is_err(), "{name}");
    }
    assert_eq!(entry_path("x.zip", "./a//b\\c.txt").unwrap(), "x.zip/a/b/c.txt");
    let (seen, result) =
        entries(zip_of(&[("../up.txt", b"x"), ("in.txt", b"y")]), &ArchiveLimits::new(1_000));
    assert!(result.is_ok());
    let expect = [("a.zip/../up.txt", "its name leads out of the archive"), ("a.zip/in.txt", "y")];
    assert_eq!(seen, expect.map(|(path, text)| (path.to_owned(), text.to_owned())));
}

#[test]
fn files_of_operating_systems_are_skipped() {
    let archive =
        zip_of(&[("__MACOSX/a.txt", b"x"), (".DS_Store", b"x"), ("d/.hidden", b"x"), ("a.txt", b"y")]);
    assert_eq!(entries(archive, &ArchiveLimits::new(1_000)).0.len(), 1);
}

#[test]
fn an_archive_that_expands_too_much_is_rejected() {
    let zeros = vec![b'a'; 50 << 20];
    let bomb = zip_of(&[("a.txt", &zeros), ("b.txt", &zeros), ("c.txt", &zeros)]);
    assert!(bomb.len() < 1 << 20);
    let (seen, result) = entries(bomb.clone(), &ArchiveLimits::new(bomb.len() as u64));
    assert_eq!(seen.len(), 2);
    assert!(seen[1].1.contains("it expands to more than 100 times its size"));
    assert!(matches!(result, Err(ReadError::Rejected(problem)) if problem.text.contains("100 times")));
    let limits = ArchiveLimits::new(1);
    let bomb = gzip_of(&vec![0; 100 << 20]);
    let mut inner = gzip_entry(item("a.txt.gz", bomb), &limits).unwrap();
    assert!(inner.read_all().unwrap_err().text.contains("is larger than"));
    assert!(inner.into_reader().read_to_end(&mut Vec::new()).is_err());
}

#[test]
fn archives_are_nested_a_few_levels_only() {
    let mut limits = ArchiveLimits::new(1);
    for _ in 0..4 {
        limits = limits.nested().unwrap();
    }
    assert!(limits.nested().unwrap_err().text.contains("more than 4 archives"));
}

#[test]
fn the_names_of_compressed_files_lose_their_extension() {
    for (name, expect) in [("a.txt.gz", "a.txt"), ("a.tgz", "a.tar"), ("a", "a")] {
        let limits = ArchiveLimits::new(1);
        assert_eq!(gzip_entry(item(name, gzip_of(b"x")), &limits).unwrap().path, expect);
    }
    let truncated = gzip_of(&b"some text".repeat(1_000))[..20].to_vec();
    assert!(gzip_entry(item("a.gz", truncated), &ArchiveLimits::new(1)).is_err());
}

#[test]
fn the_entries_of_a_tar_archive_have_their_long_names() {
    let mut builder = ::tar::Builder::new(Vec::new());
    let long = format!("{}/file.txt", "folder".repeat(30));
    for (name, content) in [("a.txt", "one"), (long.as_str(), "two")] {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mtime(1_775_037_600);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    let mut link = ::tar::Header::new_gnu();
    link.set_entry_type(::tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "link.txt", "/etc/passwd").unwrap();
    let mut seen = Vec::new();
    let archive = item("a.tar", builder.into_inner().unwrap());
    tar_entries(archive, &ArchiveLimits::new(1_000), &mut |entry| {
        if let Entry::File(mut item) = entry {
            let text = item.read_text().unwrap();
            seen.push((item.path.clone(), text, item.changed_at.clone().unwrap()));
        }
        Ok(())
    })
    .unwrap();
    let time = "2026-04-01T10:00:00Z";
    let row = |path: &str, text: &str| (format!("a.tar/{path}"), text.to_owned(), time.to_owned());
    assert_eq!(seen, [row("a.txt", "one"), row(&long, "two")]);
}

#[test]
fn encrypted_and_truncated_archives_are_rejected() {
    let mut archive = zip_of(&[("a.txt", b"secret"), ("b.txt", b"open")]);
    let directory = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    archive[6] |= 1;
    archive[directory + 8] |= 1;
    let (seen, result) = entries(archive.clone(), &ArchiveLimits::new(1_000));
    assert!(result.is_ok());
    let expect = [("a.zip/a.txt", "it is encrypted"), ("a.zip/b.txt", "open")];
    assert_eq!(seen, expect.map(|(path, text)| (path.to_owned(), text.to_owned())));
    archive.truncate(archive.len() - 30);
    assert!(matches!(entries(archive, &ArchiveLimits::new(1_000)).1, Err(ReadError::Rejected(_))));
    let mut builder = ::tar::Builder::new(Vec::new());
    let mut header = ::tar::Header::new_gnu();
    header.set_size(10_000);
    builder.append_data(&mut header, "a.txt", [b'a'; 10_000].as_slice()).unwrap();
    let archive = item("a.tar", builder.into_inner().unwrap()[..5_000].to_vec());
    let mut read = Vec::new();
    let result = tar_entries(archive, &ArchiveLimits::new(1_000), &mut |entry| {
        if let Entry::File(mut item) = entry {
            read.push(item.read_all().is_err());
        }
        Ok(())
    });
    assert!(result.is_err() || read == [true], "{read:?}");
}

#[test]
fn a_name_in_a_tar_archive_has_a_limit() {
    let mut header = ::tar::Header::new_gnu();
    header.set_entry_type(::tar::EntryType::GNULongName);
    header.set_path("././@LongLink").unwrap();
    header.set_size(1 << 20);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(512 + (1 << 20), b'a');
    let result = tar_entries(item("a.tar", bytes), &ArchiveLimits::new(1), &mut |_entry| Ok(()));
    assert!(
        matches!(result, Err(ReadError::Rejected(problem)) if problem.text.contains("longer than 65536 bytes"))
    );
}
