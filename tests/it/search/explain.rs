//! Explanations of searches: the numbers of the ranking, on the command line and on the page. They run on each kind of store:
//! on a file, and with `tests/postgres/run` on a database.

use std::path::{Path, PathBuf};

use fetchwell_core::record::{Hit, HitExplanation, Score};
use fetchwell_source::SearchQuery;
use fetchwell_tools::parse_query;
use serde_json::{Value, json};

use crate::support::stores::{new_store, open_store};
use crate::support::{HttpServer, ask, binary, fetchwell, import_records, stdout, text};

const NOW: &str = "2026-11-28T12:00:00[UTC]";

/// A near-copy: the same text with another date.
const MINUTES: &str = "Minutes of the harbour board: the lease of the boat house was renewed for three years, and the porter keeps the keys";

/// Returns a store of messages and notes about a harbour.
fn store() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
    let line = |stream: &str, key: &str, day: &str, subject: &str, body: &str| {
        let mut data = json!({"subject": subject, "body": body});
        if key == "lease" {
            data["labels"] = json!(["harbour"]);
        }
        let emitted_at = format!("{day}T09:00:00Z");
        json!({"stream": stream, "key": key, "data": data, "emitted_at": emitted_at}).to_string()
    };
    let mut lines = vec![
        line("messages", "lease", "2025-03-05", "Lease of the harbour", "Two leases were signed"),
        line("messages", "sent", "2025-03-06", "Minutes", MINUTES),
        line("messages", "again", "2025-03-07", "Minutes", MINUTES),
        line("notes", "boat", "2024-01-01", "Boat", "A harbour far away"),
    ];
    lines.extend(
        (0..30).map(|at| line("notes", &format!("n{at}"), "2023-01-01", "Other", &format!("Words {at}"))),
    );
    import_records(&path, "c", &lines.join("\n"));
    (folder, path)
}

async fn hits(path: &Path, query: &str, explains: bool) -> (Vec<Hit>, usize) {
    let parsed = parse_query(query, &NOW.parse().unwrap());
    let mut query = SearchQuery { explains, ..parsed.apply(SearchQuery::new("", 5)).unwrap() };
    let (mut hits, mut stages) = (Vec::new(), 0);
    loop {
        let page = open_store(path).search(&query).await.unwrap();
        hits.extend(page.hits);
        stages += page.stages.len();
        query.position = page.next;
        if query.position.is_none() {
            return (hits, stages);
        }
    }
}

fn sum(explanation: &HitExplanation) -> f64 {
    explanation.features.iter().map(|feature| feature.points.value()).sum()
}

#[tokio::test]
async fn an_explanation_has_the_numbers_of_the_ranking_and_changes_no_order() {
    let (_folder, path) = store();
    for query in [
        "harbour lease",
        "show me the mail about the harbour lease on 5 March 2025",
        "\"boat house\" harbour",
        "yesterday",
        "harbuor",
        "stream:notes after:2024-01-01",
        "harbour -lease",
    ] {
        let (plain, no_stages) = hits(&path, query, false).await;
        assert!(no_stages == 0 && plain.iter().all(|hit| hit.explanation.is_none()), "{query}");
        let (mut explained, stages) = hits(&path, query, true).await;
        assert!(stages > 0, "{query}");
        for hit in &mut explained {
            let explanation = hit.explanation.take().unwrap();
            let score = hit.evidence.score.map(|score| f64::from(Score::value(score)));
            let same = |one: f64, other: f64| (one - other).abs() < 1e-3;
            match (score, explanation.score) {
                (Some(score), Some(own)) => {
                    assert!(same(score, own.value()), "{query} {score} {explanation:?}");
                    let is_ranked = !explanation.features.is_empty();
                    assert!(!is_ranked || same(score, sum(&explanation)), "{query} {score} {explanation:?}");
                }
                (score, own) => assert!(own.is_none(), "{query} {score:?} {own:?}"),
            }
            assert_eq!(explanation.near_copies, hit.near_copies, "{query}");
        }
        assert_eq!(explained, plain, "{query}");
    }
}

/// Returns the answer of a command with the explanation of a record, by the end of its id.
fn explained(path: &Path, query: &str, key: &str) -> Value {
    let output = fetchwell(["search", query, "--explain", "--json", "--store", text(path)]);
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let results = answer["results"].as_array().unwrap();
    let explanations = answer["explanation"]["results"].as_array().unwrap();
    assert_eq!(results.len(), explanations.len(), "{answer}");
    let at = results.iter().position(|result| result["id"].as_str().unwrap().ends_with(key));
    explanations[at.unwrap_or_else(|| panic!("{answer}"))].clone()
}

#[test]
fn json_says_which_words_match_and_where() {
    let (_folder, path) = store();
    let found = explained(&path, "show me the mail about the harbour lease 5 March 2025", ":lease");
    let word = |word: &str| {
        let words = found["words"].as_array().unwrap();
        words.iter().find(|one| one["word"] == word).unwrap_or_else(|| panic!("{word} {found}")).clone()
    };
    let harbour = word("harbour");
    assert_eq!((&harbour["quality"], &harbour["importance_percent"]), (&json!(1.0), &json!(100)));
    let fields = harbour["matches"][0]["fields"].as_array().unwrap();
    assert!(fields.contains(&json!("subject")) && fields.contains(&json!("labels")), "{harbour}");
    assert!(harbour["weight"].as_f64().unwrap() > 0.0 && harbour["title_quality"] == 1.0, "{harbour}");
    let lease = word("lease");
    let forms = lease["matches"].as_array().unwrap();
    assert!(
        forms.iter().any(|found| found["form"] == "leases" && found["fields"] == json!(["body"])),
        "{lease}"
    );
    let show = word("show");
    assert_eq!((&show["quality"], &show["importance_percent"]), (&json!(0.0), &json!(8)));
    assert_eq!(found["date"]["quality"], 1.0);
    // The day before counts half, and no time is near another year.
    assert_eq!(explained(&path, "harbour 5 March 2025", ":sent")["date"]["quality"], 0.5);
    assert_eq!(explained(&path, "harbour 5 March 2025", ":boat")["date"]["quality"], 0.0);
    assert_eq!(explained(&path, "find the mail about the harbour", ":lease")["kind"]["quality"], 1.0);
    assert_eq!(explained(&path, "find the mail about the harbour", ":boat")["kind"]["quality"], 0.0);
    let (original, copy) =
        (explained(&path, "harbour board", ":sent"), explained(&path, "harbour board", ":again"));
    let folded = [&original, &copy].map(|one| (one["near_copies"].as_u64(), one["is_near_copy"].as_bool()));
    assert!(folded.contains(&(Some(1), None)) && folded.contains(&(None, Some(true))), "{original} {copy}");
}

#[test]
fn text_has_aligned_lines_under_each_result() {
    let (_folder, path) = store();
    let output = stdout(&fetchwell(["search", "harbour lease", "--explain", "--store", text(&path)]));
    let lines: Vec<&str> = output.lines().collect();
    let score = lines.iter().position(|line| line.starts_with("    score")).unwrap();
    let column = |line: &str, label: &str| {
        let rest = line.strip_prefix("    ").unwrap().strip_prefix(label).unwrap();
        4 + label.len() + rest.len() - rest.trim_start().len()
    };
    let columns = [
        column(lines[score], "score"),
        column(lines[score + 1], "harbour"),
        column(lines[score + 2], "lease"),
    ];
    assert_eq!(columns, [columns[0]; 3], "{output}");
    assert!(lines[score].contains(" = ") && lines[score].contains("coverage"), "{output}");
    assert!(lines[score + 1].contains("in subject") && lines[score + 1].contains("weight"), "{output}");
    let stages = lines.iter().position(|line| *line == "stages").unwrap();
    assert!(lines[stages + 1..].iter().all(|line| line.ends_with(" ms")), "{output}");
    assert!(lines[stages + 1..].iter().any(|line| line.contains("candidates")), "{output}");
    let plain = stdout(&fetchwell(["search", "harbour lease", "--store", text(&path)]));
    assert!(!plain.contains("score") && !plain.contains("stages"), "{plain}");
    let kept: Vec<&str> = lines[..stages].iter().filter(|line| !line.starts_with("    ")).copied().collect();
    assert_eq!(kept, plain.lines().collect::<Vec<_>>());
}

#[test]
fn hostile_names_of_fields_are_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_store(&folder);
    let name = "</details><script>\u{1b}[2J\u{202e}";
    let line = json!({"stream": "s", "key": "k", "data": {name: "harbour", "subject": "harbour <b>"}});
    import_records(&path, "c", &line.to_string());
    for format in [&["--json"][..], &[]] {
        let output =
            binary().args(["search", "harbour", "--explain", "--store", text(&path)]).args(format).output();
        let output = stdout(&output.unwrap());
        assert!(
            !output.contains('\u{1b}') && !output.contains('\u{202e}') && output.contains("details"),
            "{output}"
        );
    }
    let server = HttpServer::start(["--store", text(&path)]);
    let page = ask(&server.address, "GET", "/?q=harbour&explain=1", &["accept: text/html"]).text;
    assert!(
        page.contains("&lt;/details&gt;&lt;script&gt;") && !page.contains("</details><script>"),
        "{page}"
    );
}

#[test]
fn the_page_explains_on_request() {
    let (_folder, path) = store();
    let server = HttpServer::start(["--store", text(&path)]);
    let page = |target: &str| ask(&server.address, "GET", target, &["accept: text/html"]).text;
    let plain = page("/?q=harbour+lease");
    assert!(
        !plain.contains("<details") && plain.contains("href=\"/?q=harbour+lease&amp;explain=1\""),
        "{plain}"
    );
    let explained = page("/?q=harbour+lease&explain=1");
    let hits = explained.matches("class=\"passage\"").count();
    assert_eq!(explained.matches("Why it is here").count(), hits, "{explained}");
    assert_eq!(explained.matches("Time of each stage").count(), 1);
    assert!(explained.contains("href=\"/?q=harbour+lease\""), "{explained}");
    let handles = |page: &str| -> Vec<String> {
        let pieces = page.split("<code class=\"handle soft\">").skip(1);
        pieces.map(|piece| piece.split("</code>").next().unwrap().to_owned()).collect()
    };
    assert_eq!(handles(&explained), handles(&plain));
}

#[test]
fn a_very_long_query_is_explained_in_part() {
    let (_folder, path) = store();
    let words: Vec<String> = (0..150).map(|at| format!("w{at}")).collect();
    let query = format!("harbour lease {}", words.join(" "));
    let output = stdout(&fetchwell(["search", &query, "--explain", "--json", "--store", text(&path)]));
    let answer: Value = serde_json::from_str(&output).unwrap();
    let explanations = answer["explanation"]["results"].as_array().unwrap();
    for explanation in explanations {
        assert_eq!(explanation["words"].as_array().unwrap().len(), 2, "{explanation}");
    }
    assert!(output.len() < 20_000, "{}", output.len());
}
