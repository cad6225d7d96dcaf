//! Text recognition: a script in place of tesseract that behaves well and badly, and the real program where it is installed.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread::park_timeout;
use std::time::Duration;

use serde_json::{Value, json};

use super::attachments::Mail;
use crate::import::commands::Workshop;
use crate::import::files::zip_of;
use crate::import::values::record;
use crate::support::{binary, stderr, text};

/// Start of the table that tesseract 5.3 prints.
const HEADER: &str =
    "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n";

/// Start of every script: the answer of tesseract 5.3 to a question for its languages.
const SCRIPT: &str = "#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$@\" >> \"$0.calls\"\nif [ \"$1\" = --list-langs ]; then\n\
                      printf 'List of available languages in \"/usr/share/tesseract-ocr/5/tessdata/\" (3):\\ndeu\\neng\\nosd\\n'; exit\nfi\n";

/// A folder with programs, which is the whole `PATH` of a command.
struct Programs(tempfile::TempDir);

impl Programs {
    /// Creates a folder without a program.
    fn none() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a folder with a tesseract that runs this script for each picture, and a pdftoppm that draws a pixel.
    fn with(script: &str) -> Self {
        let programs = Self::none();
        programs.add("tesseract", &format!("{SCRIPT}{script}\n"));
        programs.add("pdftoppm", "#!/bin/sh\nprintf 'P5\\n1 1\\n255\\n\\0'\n");
        programs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, name: &str, script: &str) {
        fs::write(self.path(name), script).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the arguments of each call for a picture.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("tesseract.calls")).unwrap_or_default();
        calls.lines().filter(|call| *call != "--list-langs").map(str::to_owned).collect()
    }

    fn run(&self, workshop: &Workshop, arguments: &[&str]) -> Output {
        let store = workshop.store();
        binary().args(arguments).args(["--store", &store]).env("PATH", self.0.path()).output().unwrap()
    }
}

/// Returns a script that prints this text as tesseract does, each word with a confidence of 90.5.
fn prints(words: &str) -> String {
    let mut table = format!("{HEADER}1\t1\t0\t0\t0\t0\t0\t0\t9\t9\t-1\t\n");
    for (number, word) in (1..).zip(words.split(' ')) {
        writeln!(table, "5\t1\t1\t1\t1\t{number}\t0\t0\t9\t9\t90.5\t{word}").unwrap();
    }
    format!("cat >/dev/null\ncat <<'END'\n{table}END")
}

/// Returns a PNG file with a header of this size and nothing else.
fn png(width: u32, height: u32) -> Vec<u8> {
    let start: &[u8] = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR";
    [start, &width.to_be_bytes(), &height.to_be_bytes(), b"\x08\0\0\0\0"].concat()
}

/// Returns the path of a sample in the repository.
fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/files").join(name)
}

/// Returns the folder of a workshop in which the tests put their files.
fn folder(workshop: &Workshop) -> String {
    text(&Path::new(&workshop.store()).with_file_name("papers")).to_owned()
}

/// Writes a folder with a note, a picture, an archive with a picture, and a scanned document.
fn papers(workshop: &Workshop) -> String {
    workshop.file("papers/note.md", "# Note\n\na dassie\n");
    workshop.file("papers/sign.png", png(40, 20));
    workshop.file(
        "papers/old.zip",
        zip_of(&[("letter.jpg", b"\xFF\xD8\xFF\xC0\0\x0B\x08\0\x40\0\x80\x01\x01\x11\0")]),
    );
    workshop.file("papers/scan.pdf", fs::read(sample("scan.pdf")).unwrap());
    folder(workshop)
}

#[test]
fn pictures_and_scanned_pages_have_their_text_and_its_confidence() {
    let (workshop, programs) = (Workshop::new(), Programs::with(&prints("Ferry to Lerwick")));
    let papers = papers(&workshop);
    let arguments = ["add", &papers, "--connection", "c", "--ocr", "--ocr-language", "eng+deu"];
    let output = programs.run(&workshop, &arguments);
    assert!(output.status.success(), "{output:?}");
    let mut found = workshop.search("lerwick");
    found.sort();
    assert_eq!(found, ["c/documents/old.zip%2Fletter.jpg", "c/documents:scan.pdf", "c/documents:sign.png"]);
    let (data, _) = record(&workshop, "sign.png");
    assert_eq!(
        [&data["title"], &data["format"], &data["body"], &data["ocr_languages"], &data["ocr_confidence"]],
        [&json!("sign"), &json!("image"), &json!("Ferry to Lerwick"), &json!("eng+deu"), &json!(90.5)]
    );
    let (data, _) = record(&workshop, "scan.pdf");
    assert_eq!(
        [&data["format"], &data["body"], &data["ocr_confidence"], &data["pages"]],
        [&json!("pdf"), &json!("Ferry to Lerwick"), &json!(90.5), &json!(1)]
    );
    let calls = programs.calls();
    assert_eq!(calls.len(), 3, "{calls:?}");
    let is_bounded =
        |call: &String| call.starts_with("stdin stdout -c tessedit_create_tsv=1 -l eng+deu --psm 1");
    assert!(calls.iter().all(is_bounded), "{calls:?}");
    // A file that has not changed is not recognized again, and one that has changed is.
    assert!(programs.run(&workshop, &["sync", "c"]).status.success());
    assert_eq!(programs.calls().len(), 3);
    workshop.file("papers/sign.png", png(41, 20));
    assert!(programs.run(&workshop, &["sync", "c"]).status.success());
    assert_eq!(programs.calls().len(), 4);
}

/// Returns a TIFF file with pages of 100 x 50 pixels and nothing else.
fn tiff(pages: usize) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    for page in 1..=pages {
        bytes.extend(b"\x02\0\0\x01\x03\0\x01\0\0\0\x64\0\0\0\x01\x01\x03\0\x01\0\0\0\x32\0\0\0");
        let next = if page == pages { 0 } else { u32::try_from(bytes.len()).unwrap() + 4 };
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

#[test]
fn attached_pictures_and_scanned_pages_are_recognized_within_the_bounds_of_a_message() {
    let (workshop, programs) = (Workshop::new(), Programs::with(&prints("Ferry to Lerwick")));
    let scan = fs::read(sample("scan.pdf")).unwrap();
    // A picture that is attached again is not recognized again.
    let mail = |id: &str, width: u32| {
        Mail::new(id)
            .attach("image/png; name=sign.png", &png(width, 20))
            .attach("application/pdf; name=scan.pdf", &scan)
            .attach("application/zip; name=old.zip", &zip_of(&[("sign.png", &png(width, 20))]))
            .written()
    };
    let mailbox = format!("From a@x.test Wed Apr  1 10:00:00 2026\n{}\n", mail("b", 41));
    workshop.file("papers/m.eml", mail("m", 40));
    workshop.file("papers/box.mbox", mailbox);
    let papers = folder(&workshop);
    // Without the programs they are named, and read when these are there.
    let none = Programs::none();
    let output = none.run(&workshop, &["add", &papers, "--connection", "c", "--ocr"]);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("attachments not read, first box.mbox"), "{said}");
    assert!(said.contains("text recognition needs tesseract"), "{said}");
    assert!(programs.run(&workshop, &["sync", "c"]).status.success());
    let calls = programs.calls().len();
    assert!((3..=4).contains(&calls), "{calls}");
    let (data, _) = record(&workshop, "m@x.test");
    let recognized = "[text recognized with a confidence of 90.5]\n\nFerry to Lerwick";
    for (field, expect) in [
        ("attachment_1", recognized.to_owned()),
        ("attachment_2", recognized.to_owned()),
        ("attachment_3", format!("[sign.png]\n\n{recognized}")),
        ("attachment_problems", String::new()),
    ] {
        assert_eq!(data[field].as_str().unwrap_or_default(), expect, "{field}");
    }
    let mut found = workshop.search("lerwick");
    found.sort();
    assert_eq!(found, ["c/messages:b@x.test", "c/messages:m@x.test"]);
    // Messages that have not changed are not recognized again.
    assert!(programs.run(&workshop, &["sync", "c"]).status.success());
    assert_eq!(programs.calls().len(), calls);
    let large = Mail::new("large")
        .attach("image/tiff; name=pages.tif", &tiff(500))
        .attach("application/pdf; name=scan.pdf", &scan)
        .attach("image/png; name=sign.png", &png(40, 20));
    let file =
        workshop.file("large.mbox", format!("From a@x.test Wed Apr  1 10:00:00 2026\n{}", large.written()));
    let output = programs.run(&workshop, &["import", "mbox", &file, "--connection", "d", "--ocr"]);
    assert!(output.status.success(), "{output:?}");
    let (data, _) = record(&workshop, "large@x.test");
    let reasons: Vec<&str> = data["attachment_problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    let beyond = "text is recognized on at most 500 pages of the attachments of a message";
    assert_eq!(reasons[0], "499 of 500 pages: tesseract cannot read them");
    assert!(reasons[1].contains(beyond) && reasons[2] == beyond, "{reasons:?}");
    assert_eq!(data["attachment_1"], recognized);
}

#[test]
fn without_text_recognition_pictures_are_named_with_the_remedy() {
    let (workshop, programs) = (Workshop::new(), Programs::with(&prints("Ferry to Lerwick")));
    let papers = papers(&workshop);
    let arguments = ["add", &papers, "--connection", "c"];
    let said = stderr(&programs.run(&workshop, &arguments));
    for expect in [
        "2 of no kind that is read (1 .jpg, 1 .png); ",
        "and pictures of text with `--ocr`.",
        "scan.pdf: it has no text layer on its 1 page; `--ocr` (`ocr = true`) recognizes the text; it needs",
    ] {
        assert!(said.contains(expect), "{said}");
    }
    assert!(programs.calls().is_empty());
    // It can be turned on later.
    let output = programs.run(&workshop, &["add", &papers, "--connection", "c", "--ocr"]);
    assert!(output.status.success() && programs.calls().len() == 3, "{output:?}");
    let picture = workshop.file("only/sign.png", png(40, 20));
    for place in [picture.as_str(), picture.trim_end_matches("/sign.png")] {
        let said = stderr(&programs.run(&workshop, &["add", place]));
        assert!(said.contains("nothing to import") && said.contains("`--ocr`"), "{said}");
        let output = programs.run(&workshop, &["add", place, "--ocr"]);
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_missing_program_or_language_is_named_with_its_command() {
    let (workshop, none) = (Workshop::new(), Programs::none());
    let papers = papers(&workshop);
    let arguments = ["add", &papers, "--connection", "c", "--ocr"];
    let output = none.run(&workshop, &arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for expect in [
        "warning: text recognition needs tesseract, which is not installed",
        "sign.png: text recognition needs tesseract",
        "scan.pdf: it has no text layer on its 1 page; text recognition needs tesseract",
    ] {
        assert!(said.contains(expect), "{said}");
    }
    assert_eq!(workshop.search("dassie"), ["c/documents:note.md"]);
    let programs = Programs::with(&prints("Ferry to Lerwick"));
    let said = stderr(&programs.run(&workshop, &["add", &papers, "--ocr", "--ocr-language", "fra"]));
    assert!(said.contains("no data for the language `fra`") && said.contains("it has deu, eng"), "{said}");
    for language in ["../x", "-c", "eng,deu"] {
        let language = format!("--ocr-language={language}");
        let said = stderr(&programs.run(&workshop, &["add", &papers, "--ocr", &language]));
        assert!(said.contains("is no name of a language of tesseract"), "{said}");
    }
    let said = stderr(&programs.run(&workshop, &["import", "csv", &papers, "--connection", "c", "--ocr"]));
    assert!(said.contains("unexpected argument"), "{said}");
    let said = stderr(&programs.run(&workshop, &["import", "html", &papers, "--connection", "c", "--ocr"]));
    assert!(said.contains("--ocr does not apply to imports of kind html"), "{said}");
    // Files that have not changed are read when the program is there.
    fs::remove_file(programs.path("pdftoppm")).unwrap();
    let said = stderr(&programs.run(&workshop, &["sync", "c"]));
    assert!(said.contains("scanned pages needs pdftoppm"), "{said}");
    assert_eq!(workshop.search("lerwick").len(), 2);
    programs.add("pdftoppm", "#!/bin/sh\nprintf 'P5\\n1 1\\n255\\n\\0'\n");
    assert!(programs.run(&workshop, &["sync", "c"]).status.success());
    assert_eq!(workshop.search("lerwick").len(), 3);
}

#[test]
fn a_tesseract_that_misbehaves_harms_no_other_file() {
    let table = prints("Ferry to Lerwick").replace("cat >/dev/null\n", "");
    for (script, expect) in [
        ("cat >/dev/null; echo The ferry sails", "it prints something other than a table of words"),
        ("head -c 100000000 /dev/zero", "it prints more than 67108864 bytes"),
        ("head -c 9000 /dev/urandom", "it prints something other than a table of words"),
        ("printf 'Error \\033[31min pixReadMem\\n' >&2; exit 1", "it says: Error [31min pixReadMem"),
        ("kill -9 $$", "it ended with signal: 9"),
        (&format!("cat <<'END'\n{HEADER}END"), "tesseract cannot read it: it may be damaged"),
        // It reads nothing and says much, and has the text.
        (&format!("head -c 3000000 /dev/zero >&2\n{table}"), ""),
    ] {
        let (workshop, programs) = (Workshop::new(), Programs::with(script));
        let papers = papers(&workshop);
        let output = programs.run(&workshop, &["add", &papers, "--connection", "c", "--ocr"]);
        let said = stderr(&output);
        assert_eq!(output.status.success(), expect.is_empty(), "{script}: {said}");
        assert!(said.contains(expect), "{script}: {said}");
        assert_eq!(workshop.search("dassie"), ["c/documents:note.md"], "{script}");
        assert_eq!(workshop.search("lerwick").len(), if expect.is_empty() { 3 } else { 0 }, "{script}");
    }
}

#[test]
fn pictures_that_are_too_large_or_broken_are_not_decoded() {
    let (workshop, programs) = (Workshop::new(), Programs::with(&prints("Ferry")));
    for (name, content) in [
        ("large.png", png(10_000, 10_000)),
        ("cut.png", png(1, 1)[..20].to_vec()),
        ("cut.jpg", b"\xFF\xD8\xFF\xE0\0\x10JFIF".to_vec()),
        ("endless.tif", b"II*\0\x08\0\0\0\x01\0\0\x01\x03\0\x01\0\0\0\x05\0\0\0\x08\0\0\0".to_vec()),
        // tesseract reads a list of files from its input.
        ("list.png", b"/etc/passwd\n".to_vec()),
    ] {
        workshop.file(&format!("papers/{name}"), content);
    }
    let output = programs.run(&workshop, &["add", &folder(&workshop), "--connection", "c", "--ocr"]);
    let said = stderr(&output);
    for expect in [
        "large.png: it has 10000 x 10000 pixels, and text is recognized in pictures of at most 80 million",
        "cut.png: it is no complete PNG file",
        "cut.jpg: it is no complete JPEG file",
        "endless.tif: it has more than 500 pages",
        "left out: 1 with other content than the extension says (1 .png)",
    ] {
        assert!(said.contains(expect), "{said}");
    }
    assert!(programs.calls().is_empty());
}

#[test]
fn a_stopped_import_ends_a_tesseract_that_hangs_with_its_children() {
    let (workshop, programs) = (Workshop::new(), Programs::none());
    let script = "sleep 600 & echo $! > \"$0.child\"; echo $$ > \"$0.own\"; wait";
    programs.add("tesseract", &format!("{SCRIPT}{script}\n"));
    workshop.file("papers/sign.png", png(40, 20));
    let (papers, store) = (folder(&workshop), workshop.store());
    let mut import = binary();
    import.args(["add", &papers, "--ocr", "--store", &store]).env("PATH", programs.0.path());
    let mut import = import.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = |name: &str| fs::read_to_string(programs.path(name)).ok()?.trim().parse::<u32>().ok();
    let both = || pid("tesseract.child").zip(pid("tesseract.own"));
    while both().is_none() {
        assert!(import.try_wait().unwrap().is_none());
        park_timeout(Duration::from_millis(10));
    }
    let (child, own) = both().unwrap();
    let signal = std::process::Command::new("kill").args(["-INT", &import.id().to_string()]).status();
    assert!(signal.unwrap().success());
    assert_ne!(import.wait().unwrap().code(), Some(0));
    // A killed process may be waiting for init to collect it.
    let runs =
        |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"));
    while runs(child) || runs(own) {
        park_timeout(Duration::from_millis(10));
    }
}

/// Imports samples with the real programs.
#[test]
#[ignore = "needs tesseract with English and German, and pdftoppm"]
fn real_samples_are_recognized() {
    let workshop = Workshop::new();
    for name in ["sign.png", "sign.jpg", "turned.png", "pages.tif", "pages.pdf", "deutsch.png"] {
        workshop.file(&format!("papers/{name}"), fs::read(sample(name)).unwrap());
    }
    workshop.file("papers/damaged.png", &fs::read(sample("sign.png")).unwrap()[..1_500]);
    let store = workshop.store();
    let arguments = ["add", &folder(&workshop), "--connection", "c", "--ocr", "--ocr-language", "deu+eng"];
    let output = binary().args(arguments).args(["--store", &store]).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("damaged.png: tesseract cannot read it: it says: "), "{said}");
    let ferry =
        "The ferry leaves Lerwick at seven.\nBring the blue lantern and\ntwelve jars of heather honey.";
    let harbour = "Second page: the harbour master\nwaits for the tide.";
    let both = format!("{ferry}\n\n{harbour}");
    for (name, pages, expect) in [
        ("sign.png", Value::Null, ferry),
        ("sign.jpg", Value::Null, ferry),
        ("turned.png", Value::Null, ferry),
        ("pages.tif", json!(2), &both),
        ("pages.pdf", json!(2), &both),
        ("deutsch.png", Value::Null, "Die Fähre verlässt Bergen um sieben.\nGröße, Straße und Übermut."),
    ] {
        let (data, _) = record(&workshop, name);
        assert_eq!((&data["body"], &data["pages"]), (&json!(expect), &pages), "{name}");
        assert!(data["ocr_confidence"].as_f64().unwrap() > 85.0, "{data}");
    }
}
