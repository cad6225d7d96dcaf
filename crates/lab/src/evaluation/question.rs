//! The parser of labelled questions: one JSON object per line.
//!
//! ```json
//! {"id":"q1","kind":"phrase","query":"pay the overdue invoice","relevant":["work-mail/messages:m1"]}
//! {"query":"invoice 2","relevant":[{"id":"work-mail/messages:m2","grade":2}],"streams":["messages"]}
//! ```

use std::collections::BTreeSet;
use std::fmt;

use fetchwell_core::handle::{ConnectionId, Handle, RecordAddress, StreamName};
use serde::Deserialize;

/// Maximum number of questions of a file.
const MAX_QUESTIONS: usize = 100_000;

/// Maximum number of relevant records of a question.
const MAX_RELEVANT: usize = 10_000;

/// Maximum grade of a relevant record.
const MAX_GRADE: u8 = 10;

/// Maximum number of problems that an error lists.
const MAX_LISTED: usize = 10;

/// Kind of questions that name none.
const NO_KIND: &str = "questions";

/// A question with the records that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Id, unique in the file; the line number if the question has none.
    pub id: String,
    /// Kind of the question, by which results are grouped.
    pub kind: String,
    /// Text of the search.
    pub query: String,
    /// Records that answer the question. Empty for a question without an answer.
    pub relevant: Vec<RelevantRecord>,
    /// Connection to search; `None` includes all.
    pub connection: Option<ConnectionId>,
    /// Streams to search; all if empty.
    pub streams: Vec<StreamName>,
}

/// A relevant record with its grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelevantRecord {
    /// Id as a search prints it.
    pub id: String,
    /// Address in the id, if it is a handle.
    pub address: Option<RecordAddress>,
    /// Grade from 1 to 10; higher is more relevant.
    pub grade: u8,
}

/// Problems of the lines of a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidQuestions {
    problems: Vec<String>,
}

impl fmt::Display for InvalidQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed: Vec<&str> = self.problems.iter().take(MAX_LISTED).map(String::as_str).collect();
        f.write_str(&listed.join("; "))?;
        match self.problems.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionLine {
    id: Option<String>,
    kind: Option<String>,
    query: String,
    relevant: Vec<RelevantLine>,
    connection: Option<String>,
    #[serde(default)]
    streams: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a relevant record is an id, or an object with `id` and `grade`")]
enum RelevantLine {
    Id(String),
    Graded(GradedLine),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GradedLine {
    id: String,
    grade: u8,
}

/// Parses the lines of a file. Blank lines are skipped.
///
/// # Errors
///
/// Returns all invalid lines by their number, or that there are no questions or too many.
pub fn parse_questions(text: &str) -> Result<Vec<Question>, InvalidQuestions> {
    let (mut questions, mut problems, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        if questions.len() == MAX_QUESTIONS {
            problems.push(format!("line {number}: a file has at most {MAX_QUESTIONS} questions"));
            break;
        }
        match parse_line(line, number) {
            Ok(question) if !ids.insert(question.id.clone()) => {
                problems.push(format!("line {number}: another line has the same id"));
            }
            Ok(question) => questions.push(question),
            Err(problem) => problems.push(format!("line {number}: {problem}")),
        }
    }
    if questions.is_empty() && problems.is_empty() {
        problems.push("there are no questions".to_owned());
    }
    if problems.is_empty() { Ok(questions) } else { Err(InvalidQuestions { problems }) }
}

fn parse_line(line: &str, number: usize) -> Result<Question, String> {
    let QuestionLine { id, kind, query, relevant, connection, streams } = serde_json::from_str(line)
        .map_err(|error| {
            let text = error.to_string();
            text.split(" at line ").next().unwrap_or(&text).to_owned()
        })?;
    if query.trim().is_empty() {
        return Err("`query` is empty".to_owned());
    }
    if relevant.len() > MAX_RELEVANT {
        return Err(format!("a question has at most {MAX_RELEVANT} relevant records"));
    }
    let mut ids = BTreeSet::new();
    let mut records = Vec::with_capacity(relevant.len());
    for entry in relevant {
        let (id, grade) = match entry {
            RelevantLine::Id(id) => (id, 1),
            RelevantLine::Graded(GradedLine { id, grade }) => (id, grade),
        };
        if !(1..=MAX_GRADE).contains(&grade) {
            return Err(format!("`grade` is {grade}; it is from 1 to {MAX_GRADE}"));
        }
        if !ids.insert(id.clone()) {
            return Err("`relevant` has the same id twice".to_owned());
        }
        let address = id.parse::<Handle>().ok().map(|handle| handle.address().clone());
        records.push(RelevantRecord { id, address, grade });
    }
    let connection = connection.map(|name| name.parse()).transpose();
    let connection = connection.map_err(|error| format!("`connection` is no id: {error}"))?;
    let streams = streams.iter().map(|name| name.parse()).collect::<Result<Vec<StreamName>, _>>();
    let streams = streams.map_err(|error| format!("`streams` has no name of a stream: {error}"))?;
    let id = id.unwrap_or_else(|| format!("line {number}"));
    let kind = kind.unwrap_or_else(|| NO_KIND.to_owned());
    Ok(Question { id, kind, query, relevant: records, connection, streams })
}

impl RelevantRecord {
    /// Returns true for the id or the address of this record. An address without a connection is that of a record in
    /// any.
    pub fn is_at(&self, id: &str, address: Option<&RecordAddress>) -> bool {
        let is_same_address = || match (&self.address, address) {
            (Some(own), Some(other)) => {
                own.stream == other.stream
                    && own.record == other.record
                    && (own.connection.is_none() || own.connection == other.connection)
            }
            _ => false,
        };
        self.id == id || is_same_address()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_question() {
        let text = "\u{FEFF}{\"id\":\"q1\",\"kind\":\"phrase\",\"query\":\"a b\",\"relevant\":[\"c/s:1\"]}\n\n\
            {\"query\":\"x\",\"relevant\":[{\"id\":\"s:2\",\"grade\":3}],\"connection\":\"c\",\"streams\":[\"s\"]}\n";
        let questions = parse_questions(text).unwrap();
        let [one, other] = questions.as_slice() else { panic!("{questions:?}") };
        assert_eq!((one.id.as_str(), one.kind.as_str(), one.relevant[0].grade), ("q1", "phrase", 1));
        assert_eq!((other.id.as_str(), other.kind.as_str(), other.relevant[0].grade), ("line 3", NO_KIND, 3));
        assert_eq!((other.connection.as_ref().unwrap().as_str(), other.streams.len()), ("c", 1));
    }

    #[track_caller]
    fn check_problem(text: &str, expect: &str) {
        let problem = parse_questions(text).unwrap_err().to_string();
        assert!(problem.contains(expect), "{problem}");
    }

    #[test]
    fn invalid_lines_are_named() {
        let good = r#"{"query":"a","relevant":["c/s:1"]}"#;
        check_problem("", "there are no questions");
        check_problem(&format!("{good}\n{{\n\nx\n{good}"), "line 2: ");
        check_problem(&format!("{good}\n{{\n\nx\n{good}"), "; line 4: ");
        check_problem(r#"{"query":" ","relevant":[]}"#, "line 1: `query` is empty");
        check_problem(r#"{"relevant":[]}"#, "line 1: missing field `query`");
        check_problem(r#"{"query":"a","relevant_ids":[]}"#, "line 1: unknown field `relevant_ids`");
        check_problem(r#"{"query":"a","relevant":[7]}"#, "a relevant record is an id, or an object");
        check_problem(
            r#"{"query":"a","relevant":[{"id":"s:1","grade":0}]}"#,
            "`grade` is 0; it is from 1 to 10",
        );
        check_problem(r#"{"query":"a","relevant":["s:1","s:1"]}"#, "the same id twice");
        check_problem(r#"{"query":"a","relevant":[],"connection":""}"#, "`connection` is no id");
        check_problem(r#"{"query":"a","relevant":[],"streams":[""]}"#, "`streams` has no name of a stream");
        let twice = r#"{"id":"q","query":"a","relevant":[]}"#;
        check_problem(&format!("{twice}\n{twice}"), "line 2: another line has the same id");
        check_problem(&"x\n".repeat(12), "; and 2 more");
    }

    #[test]
    fn an_id_matches_its_text_and_its_address() {
        let record = |id: &str| {
            let line = format!("{{\"query\":\"a\",\"relevant\":[\"{id}\"]}}");
            parse_questions(&line).unwrap().remove(0).relevant.remove(0)
        };
        let address = |text: &str| text.parse::<Handle>().unwrap().address().clone();
        assert!(record("c/s:1").is_at("c/s/1", Some(&address("c/s:1"))));
        assert!(!record("c/s:1").is_at("d/s:1", Some(&address("d/s:1"))));
        assert!(record("s:1").is_at("d/s:1", Some(&address("d/s:1"))));
        assert!(record("https://a.test/1").is_at("https://a.test/1", None));
        assert!(!record("https://a.test/1").is_at("https://a.test/2", None));
    }
}
