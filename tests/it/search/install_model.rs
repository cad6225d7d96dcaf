//! `fetchwell embeddings install` with a hub of its own on loopback.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::model_hub::{COMMIT, ModelHub, Mood, REPOSITORY, TOKEN, tiny};
#[cfg(target_os = "linux")]
use crate::support::with_disk;
use crate::support::{import_records, stderr, stdout, text, wait_until};

/// A home folder without a model.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates the default store.
    fn with_records() -> Self {
        let home = Self::new();
        fs::create_dir_all(home.path("data/fetchwell")).unwrap();
        let line = |key: &str, body: &str| {
            json!({"stream": "notes", "key": key, "data": {"title": key, "body": body}}).to_string() + "\n"
        };
        let lines = line("one", "the car is in the garage") + &line("two", "rain all day");
        import_records(&home.path("data/fetchwell/store.db"), "c", &lines);
        home
    }

    fn config(&self) -> String {
        fs::read_to_string(self.path("config/fetchwell/config.toml")).unwrap_or_default()
    }

    fn model(&self) -> PathBuf {
        self.path("data/fetchwell/models").join(REPOSITORY.replace('/', "--"))
    }

    fn run(&self, hub: &ModelHub, arguments: &[&str]) -> Output {
        hub.install(self.0.path(), arguments).output().unwrap()
    }

    #[track_caller]
    fn json(&self, hub: &ModelHub, arguments: &[&str]) -> Value {
        serde_json::from_str(&stdout(&self.run(hub, &[arguments, &["--json"]].concat()))).unwrap()
    }

    /// Returns the names of the files in the folder of models, without locks.
    fn left(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("data/fetchwell/models")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".lock")).collect()
    }
}

#[track_caller]
fn assert_whole(folder: &Path) {
    for (name, original) in [("onnx/model.onnx", "model.onnx"), ("tokenizer.json", "tokenizer.json")] {
        assert_eq!(fs::read(folder.join(name)).unwrap(), fs::read(tiny().join(original)).unwrap(), "{name}");
    }
}

#[test]
fn a_model_is_installed_configured_and_used() {
    let (hub, home) = (ModelHub::start(), Home::with_records());
    let output = home.run(&hub, &[]);
    let (said, noted) = (stdout(&output), stderr(&output));
    assert!(said.contains("was downloaded and verified") && said.contains("2 chunks embedded"), "{said}");
    assert!(noted.contains(&format!("downloading {REPOSITORY}")) && !noted.contains(TOKEN), "{noted}");
    assert_whole(&home.model());
    assert_eq!(home.left(), [home.model().file_name().unwrap().to_str().unwrap()]);
    let expect = format!("[embedding]\nprovider = \"local\"\npath = \"{}\"\n", text(&home.model()));
    assert_eq!(home.config(), expect);
    // The token goes to the hub, and never to the host of its files.
    assert!(
        hub.hub
            .requests()
            .iter()
            .all(|request| request.authorization.as_deref() == Some(&format!("Bearer {TOKEN}")))
    );
    assert!(!hub.files.requests().is_empty());
    assert!(hub.files.requests().iter().all(|request| request.authorization.is_none()));
    // A complete model is not asked for again.
    let before = (hub.hub.requests().len(), hub.files.requests().len());
    let again = home.json(&hub, &[]);
    assert_eq!(
        (&again["origin"], &again["stores"][0]["embedded"]),
        (&json!("present"), &json!(0)),
        "{again}"
    );
    assert_eq!((hub.hub.requests().len(), hub.files.requests().len()), before);
    // A damaged file is noticed and replaced.
    let network = fs::read(home.model().join("onnx/model.onnx")).unwrap();
    for (file, content) in
        [("tokenizer.json", &b"{}"[..]), ("onnx/model.onnx", &network[..network.len() / 2])]
    {
        fs::write(home.model().join(file), content).unwrap();
        assert_eq!(home.json(&hub, &["all-MiniLM-L6-v2"])["origin"], "hub", "{file}");
        assert_whole(&home.model());
    }
    let search = ["search", "automobile", "--mode", "semantic", "--json"];
    let found = stdout(&hub.command(home.0.path(), &search).output().unwrap());
    assert!(found.contains("notes:one"), "{found}");
}

#[test]
fn an_interrupted_download_continues() {
    let (hub, home) = (ModelHub::start(), Home::new());
    hub.set(Mood::BreaksOff(1_000));
    assert_eq!(home.json(&hub, &["--no-build"])["origin"], "hub");
    assert_eq!(hub.ranges(), ["-", "bytes=1000-"]);
    // A process that is killed leaves a part, which the next one continues.
    let (hub, home) = (ModelHub::start(), Home::new());
    hub.set(Mood::Silent(1_500));
    let mut process = hub.install(home.0.path(), &["--no-build"]).spawn().unwrap();
    let part = || {
        let folder =
            home.path("data/fetchwell/models").join(format!(".{}.part", REPOSITORY.replace('/', "--")));
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files
            .filter(|file| file.file_name().to_string_lossy().starts_with("onnx"))
            .map(|file| file.metadata().unwrap().len())
            .max()
    };
    wait_until("a part was written", || part() == Some(1_500));
    // Another process does not write into the same files.
    let busy = home.run(&hub, &[]);
    assert!(!busy.status.success() && stderr(&busy).contains("another fetchwell is installing"), "{busy:?}");
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!home.model().exists() && home.config().is_empty());
    hub.set(Mood::Healthy);
    assert_eq!(home.json(&hub, &["--no-build"])["origin"], "hub");
    assert_eq!(hub.ranges(), ["-", "bytes=1500-"]);
    assert_whole(&home.model());
    // A hub that does not know ranges sends the whole file again.
    let (hub, home) = (ModelHub::start(), Home::new());
    hub.set(Mood::NoRange(2_000));
    assert_eq!(home.json(&hub, &["--no-build"])["origin"], "hub");
    assert_eq!(hub.ranges(), ["-", "bytes=2000-"]);
    assert_whole(&home.model());
}

#[test]
fn faulty_hubs_are_typed_errors_and_change_nothing() {
    let (hub, home) = (ModelHub::start(), Home::new());
    let status = |status, code| Mood::Status(status, code, Vec::new());
    let limited = Mood::Status(429, "", vec![("retry-after", "120".to_owned())]);
    for (mood, expect) in [
        (status(401, "GatedRepo"), "accept them on http://127.0.0.1"),
        (status(401, ""), "(status 401); check the name, or set HF_TOKEN"),
        (status(403, ""), "(status 403)"),
        (status(404, "RevisionNotFound"), "all-MiniLM-L6-v2 at main; check the name and the revision"),
        (limited, "limits requests; run the command again in 120 s"),
        (status(418, ""), "answers with status 418"),
        (status(302, ""), "answers with status 302"),
        (Mood::WebPage, "answers with a web page in place of"),
        (Mood::OtherJson, "is not that of a model hub (it is not JSON as expected"),
        (Mood::NoTokenizer, "there is no tokenizer.json in sentence-transformers/all-MiniLM-L6-v2"),
        (Mood::Huge, "onnx/model.onnx has 4398046511104 bytes; the limit is 2147483648"),
        (Mood::OtherSize, "tokenizer.json has 1312 bytes, and 1311 are stated"),
        (Mood::Longer, "onnx/model.onnx has 2762 bytes, and 2761 are stated"),
        (Mood::OtherBytes, "onnx/model.onnx has another checksum"),
        (Mood::WebPageAsFile, "answers with a web page in place of onnx/model.onnx"),
        (
            Mood::RedirectTo("http://files.example.com/x"),
            "redirects to http://files.example.com, where another machine",
        ),
        (Mood::RedirectTo("file:///etc/passwd"), "redirects to file://"),
        (Mood::RedirectTo("https://user:pass@files.example.com/x"), "redirects to https://files.example.com"),
    ] {
        hub.set(mood.clone());
        let output = home.run(&hub, &[]);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(expect), "{mood:?}: {said}");
        assert!(!said.contains(TOKEN) && !said.contains("Signature"), "{said}");
        assert!(home.config().is_empty() && !home.model().exists(), "{mood:?}");
    }
    // Unknown repositories, names and places.
    hub.set(Mood::Healthy);
    for (arguments, code, expect) in [
        (&["no/such"][..], 1, "refuses access to no/such (status 401); check the name"),
        (
            &["--multilingual"],
            1,
            "access to sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 (status 401)",
        ),
        (&["../../etc"], 2, "is not the name of a model"),
        (&["some-model"], 2, "is not the name of a model; write ORGANIZATION/NAME"),
        (&["--revision", "../x"], 2, "is not a branch, tag or commit"),
        (&["--from", "https://example.com/model.onnx"], 2, "is not the page of a model"),
        (&["--from", "missing"], 1, "cannot be used"),
        (&["a/b", "--multilingual"], 2, "cannot be used with"),
    ] {
        let output = home.run(&hub, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {output:?}");
        assert!(stderr(&output).contains(expect), "{output:?}");
    }
    let output =
        hub.install(home.0.path(), &[]).env("HF_ENDPOINT", "http://hub.example.com").output().unwrap();
    assert!(stderr(&output).contains("plain http is for this machine alone"), "{output:?}");
    let output = hub.install(home.0.path(), &[]).env("HF_ENDPOINT", "http://127.0.0.1:9").output().unwrap();
    assert!(stderr(&output).contains("127.0.0.1:9 cannot be reached"), "{output:?}");
    let output = hub.install(home.0.path(), &[]).env("HF_HUB_OFFLINE", "1").output().unwrap();
    assert!(stderr(&output).contains("HF_HUB_OFFLINE is set"), "{output:?}");
    // None of them is in the way of a hub that is well.
    assert_eq!(home.json(&hub, &[])["origin"], "hub");
    assert_whole(&home.model());
}

#[test]
fn models_of_the_cache_and_of_folders_are_copied() {
    let (hub, home) = (ModelHub::start(), Home::new());
    let cached = home.path("hf/hub").join(format!("models--{}", REPOSITORY.replace('/', "--")));
    let snapshot = cached.join("snapshots").join(COMMIT);
    fs::create_dir_all(snapshot.join("onnx")).unwrap();
    fs::create_dir_all(cached.join("refs")).unwrap();
    fs::write(cached.join("refs/main"), COMMIT).unwrap();
    fs::copy(tiny().join("tokenizer.json"), snapshot.join("tokenizer.json")).unwrap();
    fs::copy(tiny().join("model.onnx"), snapshot.join("onnx/model.onnx")).unwrap();
    let answer = home.json(&hub, &[]);
    assert_eq!((&answer["origin"], &answer["stores"]), (&json!("cache"), &json!([])), "{answer}");
    assert_eq!(hub.hub.requests().len(), 0);
    // Folders and files, with a name of their own or that of the folder.
    let by_hand = home.path("downloads/tiny");
    fs::create_dir_all(&by_hand).unwrap();
    for name in ["model.onnx", "tokenizer.json", "sentence_bert_config.json"] {
        fs::copy(tiny().join(name), by_hand.join(name)).unwrap();
    }
    for (arguments, folder, origin) in [
        (&["--from", "downloads/tiny"][..], "tiny", "folder"),
        (&["--from", "downloads/tiny/model.onnx"], "tiny", "present"),
        (&["mine", "--from", "downloads/tiny/model.onnx"], "mine", "folder"),
        (&["a/b", "--from", "downloads/tiny"], "a--b", "folder"),
    ] {
        let answer = home.json(&hub, arguments);
        assert_eq!(answer["origin"], origin, "{answer}");
        let folder = home.path("data/fetchwell/models").join(folder);
        assert_eq!(answer["folder"], text(&folder));
        assert!(home.config().contains(&format!("path = \"{}\"", text(&folder))), "{}", home.config());
    }
    let page = format!("{}/{REPOSITORY}", hub.hub.url);
    assert_eq!(home.json(&hub, &["--from", &page])["origin"], "present");
    // A tokenizer of another kind, and a pointer to a file that was not downloaded.
    let before = home.config();
    fs::write(by_hand.join("tokenizer.json"), "{\"model\": {\"type\": \"BPE\"}}").unwrap();
    let output = home.run(&hub, &["--from", "downloads/tiny"]);
    assert!(stderr(&output).contains("neither a word piece tokenizer"), "{output:?}");
    fs::write(by_hand.join("model.onnx"), "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
        .unwrap();
    let output = home.run(&hub, &["--from", "downloads/tiny"]);
    assert!(stderr(&output).contains("git lfs pull"), "{output:?}");
    assert_eq!(home.config(), before);
}

#[test]
fn a_configuration_keeps_what_it_has() {
    let (hub, home) = (ModelHub::start(), Home::new());
    let file = home.path("own.toml");
    let service = "# mine\nlisten = \"127.0.0.1:7401\"\n\n[embedding]\nprovider = \"http\"\nurl = \"http://127.0.0.1:9\"\n\
        model = \"m\"\ndimensions = 8\n";
    fs::write(&file, service).unwrap();
    let arguments = ["--config", text(&file), "--no-build"];
    let output = home.run(&hub, &arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("add --replace") && hub.hub.requests().is_empty(), "{output:?}");
    home.json(&hub, &[&arguments[..], &["--replace"]].concat());
    let expect = format!(
        "# mine\nlisten = \"127.0.0.1:7401\"\n\n[embedding]\nprovider = \"local\"\npath = \"{}\"\n",
        text(&home.model())
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), expect);
    // YAML and invalid files are refused before anything is downloaded.
    let requests = hub.hub.requests().len();
    fs::remove_dir_all(home.model()).unwrap();
    for (name, content, expect) in
        [("own.yaml", "", "only TOML files can be edited"), ("bad.toml", "a = ", "bad.toml")]
    {
        fs::write(home.path(name), content).unwrap();
        let output = home.run(&hub, &["--config", name]);
        assert!(!output.status.success() && stderr(&output).contains(expect), "{output:?}");
    }
    assert_eq!(hub.hub.requests().len(), requests);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_says_what_is_missing_and_the_next_run_continues() {
    let (hub, home) = (ModelHub::start(), Home::new());
    let disk = home.path("data");
    fs::create_dir(&disk).unwrap();
    // The tokenizer and two files of settings take a page each; no page is left for the network.
    let Some(mut command) = with_disk(&disk, 12) else { return };
    let install = hub.install(home.0.path(), &["--json"]);
    for (name, value) in install.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.args(install.get_args()).current_dir(home.0.path()).output().unwrap();
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("the disk is full: "), "{said}");
    let bytes: u64 =
        said.split("the disk is full: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(
        (1..=4_200).contains(&bytes) && said.contains("more bytes are needed for the model in"),
        "{said}"
    );
    assert!(home.config().is_empty());
}
