//! Searches that read the vectors of a store, with an embedding service that knows a few concepts. They run on each kind of
//! store: on a file, and with `tests/postgres/run` on a database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::stores::new_store;
use crate::support::{FakeServer, HttpServer, Model, Reply, binary, get, import_records, stderr, text};

/// Groups of words with the same meaning.
const CONCEPTS: [&[&str]; 3] = [
    &["vacation", "holiday", "beach", "seaside"],
    &["vehicle", "car", "tyre", "automobile"],
    &["physician", "doctor", "clinic"],
];

const DIMENSIONS: usize = 32;

/// Returns a vector in which words of one concept are equal and other words are hashed.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.02; DIMENSIONS];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let concept = CONCEPTS.iter().position(|words| words.contains(&word));
        let hash = word.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
        vector[concept.unwrap_or(CONCEPTS.len() + hash % (DIMENSIONS - CONCEPTS.len()))] +=
            if concept.is_some() { 2.0 } else { 0.3 };
    }
    vector
}

fn service() -> FakeServer {
    FakeServer::start(|request| {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let texts = body["input"].as_array().cloned().unwrap_or_default();
        let embedded = texts.iter().enumerate().map(
            |(index, text)| json!({"index": index, "embedding": vector(text.as_str().unwrap_or_default())}),
        );
        Reply::Json(200, json!({"data": embedded.collect::<Vec<_>>(), "model": "concepts"}).to_string())
    })
}

/// A folder with a store with vectors, and the configuration that made them.
struct Place {
    folder: tempfile::TempDir,
    /// Path of the store, or the URL of its database.
    store: PathBuf,
    service: FakeServer,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { store: new_store(&folder), folder, service: service() };
        let note = |number: usize| {
            let (key, stream) =
                (format!("n{number:02}"), if number.is_multiple_of(2) { "notes" } else { "letters" });
            let body = match number {
                10 => "Two weeks at the beach with the children.".to_owned(),
                11 => "We were at the seaside in spring.".to_owned(),
                20 => "New tyre mounted, next one in winter.".to_owned(),
                30 => "The clinic called about the results.".to_owned(),
                _ => format!("Minutes {number}: budget item{number} agreed, chapter{} open.", number % 7),
            };
            let data = json!({"subject": format!("Entry {number}"), "body": body,
                "sent_at": format!("2026-0{}-01T10:00:00Z", 1 + number % 8), "rank": number});
            json!({"stream": stream, "key": key, "data": data}).to_string()
        };
        import_records(&place.store, "cin_diary", &(0..60).map(note).collect::<Vec<_>>().join("\n"));
        let settings = format!(
            "call_deadline = \"60s\"\n[[source]]\nname = \"diary\"\nstore = \"{}\"\ndeadline = \"60s\"\n\
             [embedding]\nprovider = \"http\"\nurl = \"{}/v1\"\nmodel = \"concepts\"\n\
             dimensions = {DIMENSIONS}\nbackground = false\nquery_timeout = \"30s\"\n",
            place.store.display(),
            place.service.url
        );
        std::fs::write(place.config(), settings).unwrap();
        place
    }

    fn with_vectors() -> Self {
        let place = Self::new();
        place.build();
        place
    }

    /// Creates a store with vectors of records and of a project of documents.
    fn with_documents() -> Self {
        let place = Self::new();
        // Documents have vectors of 1,024 dimensions.
        let settings = std::fs::read_to_string(place.config()).unwrap();
        std::fs::write(place.config(), settings + "pad_to = 1024\n").unwrap();
        let docs = place.folder.path().join("docs");
        std::fs::create_dir(&docs).unwrap();
        let topic =
            |number: usize| format!("# Topic {number}\n\nThe queue{number} is drained by a worker.\n");
        for number in 0..20 {
            std::fs::write(docs.join(format!("topic-{number}.md")), topic(number)).unwrap();
        }
        let packing = "# Packing list\n\nFor the seaside, towels and hats.\n";
        std::fs::write(docs.join("packing.md"), packing).unwrap();
        let garage = "# Garage hours\n\nBring the automobile on Mondays.\n";
        std::fs::write(docs.join("garage.md"), garage).unwrap();
        let store = text(&place.store);
        for command in [
            ["project", "create", "household", "--store", store].as_slice(),
            ["import", "docs", text(&docs), "--project", "household", "--store", store, "--no-embed"]
                .as_slice(),
        ] {
            let output = binary().args(command).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
        place.build();
        place
    }

    fn build(&self) {
        let built =
            binary().args(["embeddings", "build", "--yes", "--config", text(&self.config())]).output();
        let built = built.unwrap();
        assert!(built.status.success(), "{}", stderr(&built));
    }

    /// Removes the vectors.
    fn remove(&self) {
        let removed = binary().args(["embeddings", "remove", "--config", text(&self.config())]).output();
        let removed = removed.unwrap();
        assert!(removed.status.success(), "{}", stderr(&removed));
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("fetchwell.toml")
    }

    async fn model(&self) -> Model {
        Model::over_stdio(["--config", text(&self.config())]).await
    }
}

fn keys(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let id = |result: &Value| result["id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    results.iter().map(id).collect()
}

fn warnings(answer: &Value) -> Vec<&str> {
    answer["warnings"].as_array().into_iter().flatten().map(|warning| warning.as_str().unwrap()).collect()
}

/// Reads all pages of a search.
async fn walk(model: &Model, mut arguments: Value) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let page = model.call("search", arguments).await;
        found.extend(keys(&page));
        match page.get("next_cursor") {
            Some(cursor) => arguments = json!({"cursor": cursor, "limit": 3}),
            None => return found,
        }
    }
}

#[tokio::test]
async fn records_without_a_word_of_the_query_are_found_by_meaning() {
    let place = Place::with_vectors();
    let model = place.model().await;
    for mode in ["auto", "semantic", "hybrid"] {
        let found = model.call("search", json!({"query": "vacation", "mode": mode, "limit": 2})).await;
        assert_eq!(BTreeSet::from_iter(keys(&found)), BTreeSet::from_iter(["n10", "n11"].map(str::to_owned)));
        assert_eq!(warnings(&found), Vec::<&str>::new());
        for result in found["results"].as_array().unwrap() {
            assert_eq!(result["match"], "meaning", "{found}");
            let text = result["text"].as_str().unwrap();
            assert!(text.contains("beach") || text.contains("seaside"), "{text}");
        }
    }
    let found = model.call("search", json!({"query": "vacation", "mode": "lexical"})).await;
    assert!(keys(&found).is_empty(), "{found}");
    // A hit with a word of the query is not marked as found by meaning.
    let found = model.call("search", json!({"query": "tyre"})).await;
    assert_eq!((keys(&found)[0].as_str(), &found["results"][0]["match"]), ("n20", &Value::Null));
}

#[test]
fn an_explanation_says_how_near_a_record_is() {
    let place = Place::with_vectors();
    let explained = |query: &str, mode: &str| {
        let config = place.config();
        let arguments = ["search", query, "--mode", mode, "--explain", "--json", "--config", text(&config)];
        let output = binary().args(arguments).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stages = answer["explanation"]["stages"].as_array().unwrap();
        for stage in ["embedding", "meaning"] {
            assert!(stages.iter().any(|known| known["name"] == stage), "{stage} {answer}");
        }
        let results = answer["explanation"]["results"].as_array().unwrap().clone();
        (keys(&answer), results)
    };
    for mode in ["hybrid", "semantic"] {
        let (keys, results) = explained("vacation", mode);
        for (key, result) in
            keys.iter().zip(&results).filter(|(key, _)| ["n10", "n11"].contains(&key.as_str()))
        {
            let meaning = &result["meaning"];
            assert_eq!(meaning["is_placed"], true, "{key} {result}");
            let near = ["similarity", "deviations"].map(|name| meaning[name].as_f64().unwrap());
            assert!(near[0] > 0.0 && near[0] <= 1.001 && near[1] > 2.0, "{result}");
            assert_eq!(meaning["points"].is_number(), mode == "hybrid", "{result}");
        }
        assert!(keys.contains(&"n10".to_owned()), "{keys:?}");
    }
}

fn titles(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    results.iter().map(|result| result["title"].as_str().unwrap()).collect()
}

/// A search that is not limited to a project finds its documents by their meaning, too.
#[tokio::test]
async fn documents_of_projects_are_found_by_meaning_among_records() {
    let place = Place::with_documents();
    let model = place.model().await;
    for mode in ["auto", "semantic", "hybrid"] {
        let found = model.call("search", json!({"query": "vacation", "mode": mode, "limit": 3})).await;
        assert_eq!(
            BTreeSet::from_iter(titles(&found)),
            BTreeSet::from(["Entry 10", "Entry 11", "Packing list"]),
            "{found}"
        );
        assert_eq!(warnings(&found), Vec::<&str>::new());
        let results = found["results"].as_array().unwrap();
        let document = results.iter().find(|result| result["title"] == "Packing list").unwrap();
        assert_eq!(document["match"], "meaning", "{found}");
        assert!(document["text"].as_str().unwrap().contains("seaside, towels"), "{found}");
        let fetched = model.call("fetch", json!({"id": document["id"]})).await;
        assert!(fetched["text"].as_str().unwrap().contains("towels and hats"), "{fetched}");
    }
    for (arguments, has_document, has_record) in [
        (json!({"query": "vacation", "connection_id": "household"}), true, false),
        (json!({"query": "vacation", "streams": ["documents"]}), true, false),
        (json!({"query": "vacation", "streams": ["notes"]}), false, true),
        (json!({"query": "vacation", "connection_id": "cin_diary"}), false, true),
        (json!({"query": "vacation -towels"}), false, true),
        (json!({"query": "vacation \"towels and hats\""}), true, false),
    ] {
        let found = model.call("search", arguments.clone()).await;
        let titles = titles(&found);
        assert_eq!(titles.contains(&"Packing list"), has_document, "{arguments}: {titles:?}");
        assert_eq!(titles.contains(&"Entry 10"), has_record, "{arguments}: {titles:?}");
    }
    // Hits by words stay before the document that only its meaning found.
    let words = model.call("search", json!({"query": "tyre winter", "mode": "lexical"})).await;
    let both = model.call("search", json!({"query": "tyre winter", "mode": "hybrid", "limit": 5})).await;
    assert_eq!(titles(&both)[0], titles(&words)[0], "{both}");
    assert!(titles(&both).contains(&"Garage hours"), "{both}");
    // Without vectors the words find what they found before.
    place.remove();
    let found = model.call("search", json!({"query": "towels"})).await;
    assert_eq!(titles(&found), ["Packing list"]);
}

#[tokio::test]
async fn filters_and_operators_apply_to_hits_by_meaning() {
    let place = Place::with_vectors();
    let model = place.model().await;
    for (arguments, expect) in [
        (json!({"query": "vacation", "streams": ["notes"]}), "n10"),
        (json!({"query": "vacation", "streams": ["letters"]}), "n11"),
        (json!({"query": "vacation -seaside"}), "n10"),
        (json!({"query": "vacation -\"at the beach\""}), "n11"),
        (json!({"query": "vacation after:2026-04-01"}), "n11"),
        (json!({"query": "vacation before:2026-03-15"}), "n10"),
        (json!({"query": "vacation stream:letters"}), "n11"),
        (json!({"query": "vacation", "streams": ["notes"], "filter": {"rank": {"gte": 10}}}), "n10"),
    ] {
        for mode in ["semantic", "hybrid"] {
            let mut arguments = arguments.clone();
            arguments["mode"] = json!(mode);
            arguments["limit"] = json!(20);
            let found = model.call("search", arguments.clone()).await;
            let best = keys(&found);
            assert_eq!(best.first().map(String::as_str), Some(expect), "{arguments} {found}");
            let other = if expect == "n10" { "n11" } else { "n10" };
            assert!(!best.iter().any(|key| key == other), "{arguments} {found}");
        }
    }
    let filter = json!({"query": "vacation", "streams": ["notes"], "filter": {"rank": {"gt": 58}}});
    assert!(keys(&model.call("search", filter).await).is_empty());
}

#[tokio::test]
async fn walks_are_exact_and_need_no_model_after_the_first_page() {
    let place = Place::with_vectors();
    let model = place.model().await;
    for mode in ["semantic", "hybrid"] {
        let arguments = json!({"query": "vacation minutes budget", "mode": mode, "limit": 3});
        let first = walk(&model, arguments.clone()).await;
        assert!(first.contains(&"n10".to_owned()), "{mode} {first:?}");
        assert_eq!(first.len(), BTreeSet::from_iter(&first).len(), "{mode} {first:?}");
        assert!(first.len() > 55, "{mode} {first:?}");
        assert_eq!(walk(&model, arguments.clone()).await, first, "{mode}");
        // New vectors or a missing service do not change the pages of a walk that began before.
        let page = model.call("search", arguments).await;
        place.remove();
        let mut rest = keys(&page);
        rest.extend(walk(&model, json!({"cursor": page["next_cursor"], "limit": 3})).await);
        assert_eq!(rest, first, "{mode}");
        place.build();
    }
}

/// Near-copies are those of one connection. Other records than these are found before the folded ones.
#[tokio::test]
async fn near_copies_without_a_word_of_the_query_are_folded() {
    let place = Place::new();
    let letter = |connection: &str, keys: std::ops::Range<usize>| {
        let line = |key: usize| {
            let body = "Dear all, we walked along the beach every day, the weather was fine and the children liked it.";
            json!({"stream": "post", "key": format!("{connection}{key}"), "data": {"subject": "Greetings", "body": body}})
                .to_string()
        };
        import_records(&place.store, connection, &keys.map(line).collect::<Vec<_>>().join("\n"));
    };
    letter("one", 0..5);
    letter("two", 0..2);
    place.build();
    let model = place.model().await;
    for mode in ["semantic", "hybrid"] {
        let found = model.call("search", json!({"query": "vacation", "mode": mode, "limit": 4})).await;
        let shown: BTreeSet<(String, u64)> = keys(&found)
            .into_iter()
            .zip(found["results"].as_array().unwrap())
            .map(|(key, result)| (key, result["copies"].as_u64().unwrap_or(0)))
            .collect();
        let expect =
            [("n10", 0), ("n11", 0), ("one0", 4), ("two0", 1)].map(|(key, copies)| (key.to_owned(), copies));
        assert_eq!(shown, BTreeSet::from(expect), "{mode} {found}");
        let all = walk(&model, json!({"query": "vacation", "mode": mode, "limit": 3})).await;
        let copies = all.iter().filter(|key| key.starts_with("one") || key.starts_with("two"));
        assert_eq!(copies.collect::<BTreeSet<_>>().len(), 7, "{mode} {all:?}");
        assert_eq!(all.len(), BTreeSet::from_iter(&all).len(), "{mode} {all:?}");
    }
    // A word that all copies have folds them in the same way, and nearness does not raise the folded ones.
    let arguments = json!({"query": "children budget item21 vacation", "mode": "hybrid", "limit": 3});
    let found = model.call("search", arguments.clone()).await;
    let of_first = found["results"].as_array().unwrap().iter().find(|hit| hit["id"] == "one/post:one0");
    assert_eq!(of_first.unwrap()["copies"], 4, "{found}");
    let all = walk(&model, arguments).await;
    let at =
        |key: &str| all.iter().position(|found| found == key).unwrap_or_else(|| panic!("{key}: {all:?}"));
    assert!(at("one0") < at("two1") && at("n00") < at("one3") && at("n11") > 0, "{all:?}");
}

#[tokio::test]
async fn deleted_records_are_not_found_by_meaning() {
    let place = Place::with_vectors();
    let model = place.model().await;
    assert_eq!(keys(&model.call("search", json!({"query": "physician"})).await)[0], "n30");
    import_records(
        &place.store,
        "cin_diary",
        &json!({"stream": "notes", "key": "n30", "op": "delete"}).to_string(),
    );
    for mode in ["semantic", "hybrid"] {
        let found = model.call("search", json!({"query": "physician", "mode": mode, "limit": 60})).await;
        assert!(!keys(&found).contains(&"n30".to_owned()), "{found}");
    }
}

#[tokio::test]
async fn failing_service_is_answered_by_words_with_one_warning() {
    let place = Place::with_vectors();
    place.service.close();
    let model = place.model().await;
    for mode in ["auto", "semantic", "hybrid"] {
        let found = model.call("search", json!({"query": "vacation tyre", "mode": mode})).await;
        assert_eq!(keys(&found), ["n20"], "{mode}");
        let [warning] = warnings(&found)[..] else { panic!("{found}") };
        let of_mode = format!("`mode` {mode} is not available: this source was ");
        let reason = if mode == "auto" { warning } else { warning.strip_prefix(&of_mode).unwrap() };
        assert!(reason.starts_with("searched by words only: the embedding"), "{warning}");
        assert!(warning.contains("check ") && warning.contains("[embedding]"), "{warning}");
    }
    let found = model.call("search", json!({"query": "tyre", "mode": "lexical"})).await;
    assert!(warnings(&found).is_empty(), "{found}");
}

#[tokio::test]
async fn store_without_vectors_is_searched_by_words_and_calls_no_service() {
    let place = Place::new();
    let model = place.model().await;
    let found = model.call("search", json!({"query": "tyre"})).await;
    assert_eq!((keys(&found), warnings(&found).len()), (vec!["n20".to_owned()], 0));
    let found = model.call("search", json!({"query": "tyre", "mode": "hybrid"})).await;
    assert_eq!(
        warnings(&found),
        [
            "`mode` hybrid is not available: this source was searched by words only: the store has no vectors; run `fetchwell embeddings build`"
        ]
    );
    assert!(place.service.requests().is_empty());
}

#[tokio::test]
async fn equal_queries_are_embedded_once() {
    let place = Place::with_vectors();
    let before = place.service.requests().len();
    let model = place.model().await;
    for mode in ["auto", "semantic", "hybrid", "lexical"] {
        model.call("search", json!({"query": "vacation", "mode": mode})).await;
    }
    let requests = place.service.requests();
    let queries = requests.iter().skip(before).filter(|request| request.body.contains("vacation")).count();
    // The same request checks that the model is that of the vectors.
    assert_eq!((queries, requests.len() - before), (1, 1));
}

#[test]
fn routes_of_v1_and_the_command_line_have_modes() {
    let place = Place::with_vectors();
    let config = place.config();
    let http = HttpServer::start(["--config", text(&config)]);
    let found = |path: &str| get(&http.address, path).json();
    for (path, mode) in [
        ("/v1/search/semantic?q=vacation&limit=2", json!("semantic")),
        ("/v1/search/hybrid?q=vacation&limit=2", json!("hybrid")),
        ("/v1/search?q=vacation&limit=2&mode=hybrid", json!("hybrid")),
        ("/v1/search?q=vacation&limit=2&mode=auto", Value::Null),
    ] {
        let page = found(path);
        assert_eq!(page["retrieval_mode"], mode, "{page}");
        assert_eq!(page["data"].as_array().unwrap().len(), 2, "{page}");
        assert_eq!(page["meta"]["warnings"], json!([]), "{page}");
    }
    assert_eq!(found("/v1/search?q=vacation")["data"], json!([]));
    assert_eq!(found("/v1/search?q=vacation&mode=x")["error"]["code"], "invalid_request");
    let printed = |mode: &str| search(&config, mode);
    assert!(printed("auto").contains("meaning") && !printed("lexical").contains("n10"));
}

fn search(config: &Path, mode: &str) -> String {
    let arguments = ["search", "vacation", "--config", text(config), "--mode", mode];
    String::from_utf8(binary().args(arguments).output().unwrap().stdout).unwrap()
}
