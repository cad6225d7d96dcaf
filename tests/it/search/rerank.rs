//! Reranked searches through the built binary, with a service on a real socket.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{
    FakeServer, HttpServer, Model, Reply, fetchwell, get, import_records, stderr, stdout, text,
};

/// The way in which the service answers.
#[derive(Debug, Clone)]
enum Mood {
    /// Scores that grow from the first passage to the last.
    Reversed,
    /// This status and body.
    Status(u16, &'static str),
    /// It never answers.
    Silent,
}

/// A store, a rerank service, and a configuration of both.
struct Place {
    folder: tempfile::TempDir,
    service: FakeServer,
    mood: Arc<Mutex<Mood>>,
}

impl Place {
    fn new(timeout: &str) -> Self {
        let mood = Arc::new(Mutex::new(Mood::Reversed));
        let now = Arc::clone(&mood);
        let service = FakeServer::start(move |request| {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let count = body["documents"].as_array().unwrap().len();
            let mood = now.lock().unwrap().clone();
            match mood {
                Mood::Status(status, body) => Reply::Json(status, body.to_owned()),
                Mood::Silent => Reply::Hang,
                Mood::Reversed => {
                    let score = |index: usize| json!({"index": index, "relevance_score": index});
                    let results: Vec<Value> = (0..count).rev().map(score).collect();
                    Reply::Json(200, json!({"id": "1", "results": results}).to_string())
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let line = |number: usize| {
            let data =
                json!({"title": format!("Letter {number}"), "body": format!("the invoice {number} is due")});
            json!({"stream": "letters", "key": format!("l{number}"), "data": data}).to_string() + "\n"
        };
        import_records(&folder.path().join("a.db"), "c", &(0..80).map(line).collect::<String>());
        let source = "[[source]]\nname = \"a\"\nstore = \"a.db\"\n";
        let rerank = format!(
            "[rerank]\nprovider = \"http\"\nurl = \"{}/v1\"\nmodel = \"m\"\ntimeout = \"{timeout}\"\n",
            service.url
        );
        std::fs::write(folder.path().join("plain.toml"), source).unwrap();
        std::fs::write(folder.path().join("rerank.toml"), format!("{source}{rerank}")).unwrap();
        Self { folder, service, mood }
    }

    fn config(&self, name: &str) -> String {
        text(&self.folder.path().join(name)).to_owned()
    }

    /// Returns the ids of a walk, with the warnings of its first page.
    async fn walk(&self, config: &str, limit: usize) -> (Vec<String>, Vec<String>) {
        let model = Model::over_stdio(["--config", &self.config(config)]).await;
        let (mut ids, mut warnings) = (Vec::new(), None);
        let mut arguments = json!({"query": "invoice due", "limit": limit});
        loop {
            let page = model.call("search", arguments).await;
            let results = page["results"].as_array().unwrap();
            ids.extend(results.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()));
            let said = page["warnings"].as_array().cloned().unwrap_or_default();
            let said = || said.iter().map(|warning| warning.as_str().unwrap().to_owned()).collect();
            warnings.get_or_insert_with(said);
            let Some(cursor) = page["next_cursor"].as_str() else {
                return (ids, warnings.unwrap_or_default());
            };
            arguments = json!({"cursor": cursor});
        }
    }
}

#[tokio::test]
async fn the_first_hits_are_reranked_and_walks_have_each_hit_once() {
    let place = Place::new("5s");
    let (plain, _) = place.walk("plain.toml", 10).await;
    assert_eq!(plain.len(), 80);
    let (ids, warnings) = place.walk("rerank.toml", 10).await;
    assert_eq!((ids.len(), warnings), (80, Vec::new()));
    // The last of the 50 candidates has the best score, and the first one stays near the top.
    assert_eq!(ids[..2], [plain[0].clone(), plain[49].clone()]);
    assert_ne!(ids[..50], plain[..50]);
    assert_eq!(ids[50..], plain[50..]);
    let mut sorted = (ids.clone(), plain);
    sorted.0.sort();
    sorted.1.sort();
    assert_eq!(sorted.0, sorted.1);
    // The whole walk sends one request, with the words of the query and passages of 50 hits.
    let requests = place.service.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].line, "POST /v1/rerank");
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(
        (&body["query"], &body["model"], &body["top_n"]),
        (&json!("invoice due"), &json!("m"), &json!(50))
    );
    assert!(body["documents"][0].as_str().unwrap().starts_with("Letter "), "{body}");
    assert_eq!(place.walk("rerank.toml", 10).await.0, ids, "two walks have the same order");
    let config = place.config("rerank.toml");
    let explained = fetchwell(["search", "invoice", "due", "--explain", "--json", "--config", &config]);
    let answer: Value = serde_json::from_str(&stdout(&explained)).unwrap();
    assert_eq!(answer["explanation"]["results"][1]["reranked"], json!({"before": 50, "after": 2}));
    // The record-server API has the same order, and its later pages have all details of a hit.
    let server = HttpServer::start(["--config", &place.config("rerank.toml")]);
    let (mut keys, mut target) = (Vec::new(), "/v1/search?q=invoice+due&limit=20".to_owned());
    loop {
        let page = get(&server.address, &target).json();
        for hit in page["data"].as_array().unwrap() {
            assert!(hit["snippet"]["text"].as_str().unwrap().contains("<mark>"), "{hit}");
            assert!(!hit["matched_fields"].as_array().unwrap().is_empty(), "{hit}");
            keys.push(format!("c/letters:{}", hit["record_key"].as_str().unwrap()));
        }
        let Some(next) = page["links"]["next"].as_str() else { break };
        target = next.to_owned();
    }
    assert_eq!(keys, ids);
}

#[test]
fn eval_measures_the_reranked_order() {
    let place = Place::new("5s");
    let questions = place.folder.path().join("questions.jsonl");
    let measured = |config: &str| {
        let output = fetchwell(["eval", text(&questions), "--config", &place.config(config), "--json"]);
        let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
        (report["runs"][0]["questions"][0]["hit_10"].as_f64().unwrap(), stderr(&output))
    };
    let found = fetchwell([
        "search",
        "invoice",
        "due",
        "--config",
        &place.config("plain.toml"),
        "--limit",
        "50",
        "--json",
    ]);
    let found: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let last = found["results"].as_array().unwrap().last().unwrap()["id"].clone();
    std::fs::write(&questions, json!({"query": "invoice due", "relevant": [last]}).to_string()).unwrap();
    assert_eq!((measured("plain.toml").0, measured("rerank.toml").0), (0.0, 1.0));
    *place.mood.lock().unwrap() = Mood::Status(500, "{}");
    let (hit, said) = measured("rerank.toml");
    assert_eq!((hit, said.matches("the results are not reranked: ").count()), (0.0, 1), "{said}");
}

#[tokio::test]
async fn a_faulty_service_leaves_the_order_found_with_one_warning() {
    let place = Place::new("300ms");
    let (plain, _) = place.walk("plain.toml", 20).await;
    for (mood, expect) in [
        (Mood::Status(500, "{}"), "refuses the request"),
        (Mood::Status(401, "{}"), "rejects its key"),
        (Mood::Status(429, "{}"), "limits requests"),
        (
            Mood::Status(200, "{\"results\": [{\"index\": 0, \"relevance_score\": 1}]}"),
            "gave an invalid answer",
        ),
        (Mood::Status(200, "<html>"), "gave an invalid answer"),
        (Mood::Silent, "did not answer within 300ms"),
    ] {
        *place.mood.lock().unwrap() = mood;
        let (ids, warnings) = place.walk("rerank.toml", 20).await;
        assert_eq!(ids, plain, "{expect}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("the results are not reranked: ") && warnings[0].contains(expect),
            "{warnings:?}"
        );
    }
}
