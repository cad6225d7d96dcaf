//! `fetchwell eval` measures search on labelled questions, and `eval make` makes questions.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{demo_store, fetchwell, import_records, stderr, stdout, text};

/// A store with two records of one word each, and one with both.
fn store() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("me.db");
    let record =
        |key: &str, body: &str| json!({"stream": "notes", "key": key, "data": {"body": body}}).to_string();
    let lines = [record("a", "apple"), record("b", "banana"), record("c", "cherry cherry tree")].join("\n");
    import_records(&store, "c", &lines);
    (folder, store)
}

fn write(folder: &TempDir, questions: &[Value]) -> PathBuf {
    let file = folder.path().join("questions.jsonl");
    std::fs::write(&file, questions.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    file
}

#[track_caller]
fn report(output: &std::process::Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).unwrap()
}

#[test]
fn questions_have_operators() {
    let (folder, store) = store();
    let question = |query: &str, relevant: &str| json!({"query": query, "relevant": [relevant]});
    let questions = write(
        &folder,
        &[
            question("stream:notes -banana -cherry", "c/notes:a"),
            question("apple cherry -tree account:c", "c/notes:a"),
            question("\"cherry tree\"", "c/notes:c"),
        ],
    );
    let report = report(&fetchwell(["eval", text(&questions), "--store", text(&store), "--json"]));
    for question in report["runs"][0]["questions"].as_array().unwrap() {
        assert_eq!(question["hit_1"], 1.0, "{question}");
    }
}

#[test]
fn kinds_are_measured_and_count_equally() {
    let (folder, store) = store();
    let questions = write(
        &folder,
        &[
            json!({"id": "1", "kind": "found", "query": "apple", "relevant": ["c/notes:a"]}),
            json!({"id": "2", "kind": "found", "query": "banana", "relevant": [{"id": "notes:b", "grade": 3}]}),
            json!({"id": "3", "kind": "found", "query": "cherry", "relevant": ["c/notes:c"], "connection": "c"}),
            json!({"id": "4", "kind": "lost", "query": "apple", "relevant": ["c/notes:b"], "streams": ["notes"]}),
            json!({"id": "5", "kind": "no answer", "query": "zeppelin", "relevant": []}),
        ],
    );
    let output = fetchwell(["eval", text(&questions), "--store", text(&store), "--json"]);
    let report = report(&output);
    let run = &report["runs"][0];
    assert_eq!(run["mode"], "auto");
    let kind =
        |number: usize| (&run["kinds"][number]["kind"], &run["kinds"][number]["measures"]["ndcg_10"]["mean"]);
    assert_eq!(kind(0), (&json!("found"), &json!(1.0)));
    assert_eq!(kind(1), (&json!("lost"), &json!(0.0)));
    let all = &run["all"];
    assert_eq!((&all["n"], &all["measures"]["hit_1"]["mean"]), (&json!(4), &json!(0.5)));
    assert_eq!(run["unanswerable"], json!({"n": 1, "without_hits": 1}));
    assert_eq!(run["questions"][2]["recall_50"], 1.0);
    assert_eq!(report.get("difference"), None);
    let shown = stdout(&fetchwell(["eval", text(&questions), "--store", text(&store)]));
    for part in ["nDCG@10", "found", "lost", "1 questions without an answer: nothing found for 1"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn two_stores_are_compared_question_by_question() {
    let (folder, store) = store();
    let (_other_folder, other) = demo_store();
    let lines = [
        json!({"query": "apple", "relevant": ["c/notes:a"]}),
        json!({"query": "banana", "relevant": ["c/notes:b"]}),
    ];
    let questions = write(&folder, &lines);
    let output =
        fetchwell(["eval", text(&questions), "--store", text(&store), "--against", text(&other), "--json"]);
    let compared = report(&output);
    let expect = json!({"mean": 1.0, "low": 1.0, "high": 1.0});
    assert_eq!(compared["difference"]["all"]["ndcg_10"], expect);
    assert!(stderr(&output).contains("no record has the id c/notes:a"), "{}", stderr(&output));
    let output = fetchwell([
        "eval",
        text(&questions),
        "--store",
        text(&store),
        "--mode",
        "lexical",
        "--mode",
        "hybrid",
    ]);
    assert!(stdout(&output).contains("nDCG@10 of the first run minus the second"), "{}", stdout(&output));
}

#[test]
fn unknown_ids_and_invalid_lines_are_named() {
    let (folder, store) = store();
    let lines = [json!({"query": "apple", "relevant": ["c/notes:a", "c/notes:z", "d/notes:a", "nothing"]})];
    let questions = write(&folder, &lines);
    let output = fetchwell(["eval", text(&questions), "--store", text(&store), "--json"]);
    assert_eq!(report(&output)["runs"][0]["unknown"], json!(["c/notes:z", "d/notes:a", "nothing"]));
    std::fs::write(&questions, "{\"query\":\"a\",\"relevant\":[]}\n{\"query\":7}\n\u{1b}[2J\n").unwrap();
    let output = fetchwell(["eval", text(&questions), "--store", text(&store)]);
    assert_eq!(output.status.code(), Some(1));
    let problem = stderr(&output);
    assert!(
        problem.contains("line 2: ") && problem.contains("line 3: ") && !problem.contains('\u{1b}'),
        "{problem}"
    );
    std::fs::write(&questions, [0xFF, 0xFE]).unwrap();
    let output = fetchwell(["eval", text(&questions), "--store", text(&store)]);
    assert!(stderr(&output).contains("not UTF-8"), "{}", stderr(&output));
    let output = fetchwell(["eval", "--store", text(&store)]);
    assert_eq!(output.status.code(), Some(2), "a file of questions is needed");
}

#[test]
fn made_questions_are_the_same_each_time_and_find_their_records() {
    let (folder, store) = demo_store();
    let make = |name: &str, seed: &str| {
        let out = folder.path().join(name);
        let output = fetchwell([
            "eval",
            "make",
            "--store",
            text(&store),
            "--out",
            text(&out),
            "--seed",
            seed,
            "--per-kind",
            "5",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        std::fs::read_to_string(out).unwrap()
    };
    let made = make("one.jsonl", "1");
    assert_eq!(made, make("two.jsonl", "1"));
    assert_ne!(made, make("three.jsonl", "2"));
    let out = folder.path().join("one.jsonl");
    let again = fetchwell(["eval", "make", "--store", text(&store), "--out", text(&out)]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("one.jsonl exists; choose another --out"), "{}", stderr(&again));
    let report = report(&fetchwell(["eval", text(&out), "--store", text(&store), "--json"]));
    let run = &report["runs"][0];
    assert_eq!(run["unknown"], json!([]));
    let kinds = run["kinds"].as_array().unwrap();
    let exact = kinds.iter().find(|kind| kind["kind"] == "exact_word").unwrap();
    assert_eq!(exact["measures"]["recall_50"]["mean"], 1.0, "{exact}");
}

#[cfg(unix)]
#[test]
fn made_questions_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, store) = demo_store();
    let out = folder.path().join("made.jsonl");
    fetchwell(["eval", "make", "--store", text(&store), "--out", text(&out)]);
    assert_eq!(std::fs::metadata(out).unwrap().permissions().mode() & 0o777, 0o600);
}
