//! `fetchwell search`: prints the results that a client would get.

use clap::Args;
use fetchwell_core::record::RecordData;
use fetchwell_core::terminal::Line;
use fetchwell_core::terminal::output::note;
use fetchwell_source::SearchMode;
use fetchwell_tools::{
    ExplainedSearch, ExplanationLine, Payload, SearchExplanation, Toolbox, explanation_lines, parse_query,
    parse_since, stage_lines,
};
use serde_json::{Value, json};

use super::mode::ModeName;
use super::print::{FAINT, Printer, STRONG};
use crate::app::failure::{Failure, describe_failure, with_option_names};
use crate::app::open::{WITH_WHOLE_INDEX, call, joined, open_sources, runtime, toolbox};
use crate::app::rerank::reranking;
use crate::app::settings::SourceArgs;
use crate::config::Environment;

/// Exit code of a search that fails, as of `grep`. 1 says that nothing was found.
pub(super) const ERROR: u8 = 2;

/// Maximum width of the labels that are aligned. A longer one, such as a hash in a query, moves its own line alone.
const MAX_LABEL_WIDTH: usize = 20;

/// Search as a client would.
#[derive(Debug, Args)]
#[command(after_help = "\
Operators: \"exact phrase\" -word title:x from:x stream:x connection:x after:2026-01-31 before:2026-02 since:30d
An operator with quotes or a leading minus has to be quoted for the shell: 'invoice -draft \"net 30\"'

Exit codes: 0 if there are results, 1 if there are none, 2 if the search fails or the command line is wrong")]
pub(super) struct Search {
    /// Words to find, and operators.
    #[arg(value_name = "WORDS", required_unless_present = "since")]
    words: Vec<String>,

    #[command(flatten)]
    source: SourceArgs,

    /// Maximum number of results, 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_limit)]
    limit: u16,

    /// Only this account.
    #[arg(long, value_name = "ID")]
    connection_id: Option<String>,

    /// Only this stream; may be repeated.
    #[arg(long, value_name = "NAME")]
    stream: Vec<String>,

    /// Find records by words, by meaning, or by both.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ModeName::Auto)]
    mode: ModeName,

    /// Only records since a date or an age: 2026-01-31, 12h, 30d, 2w, 6m, 1y.
    #[arg(long, value_name = "AGE", value_parser = check_since)]
    since: Option<String>,

    /// Say why each result is where it is, and how long each stage took. With --json, `explanation` has it.
    #[arg(long)]
    explain: bool,
}

/// Parses `--limit`. More than 100 is reduced later, with a warning.
fn parse_limit(limit: &str) -> Result<u16, &'static str> {
    limit.parse().ok().filter(|limit| *limit > 0).ok_or("write a number from 1 to 100")
}

/// Refuses a value of `--since` that is neither an age nor a date.
fn check_since(since: &str) -> Result<String, &'static str> {
    let parsed = parse_since(since, jiff::Timestamp::UNIX_EPOCH);
    parsed.map(|_| since.to_owned()).ok_or("write 12h, 30d, 2w, 6m, 1y or a date as 2026-01-31")
}

impl Search {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let has_results = self.search(printer, environment).map_err(|failure| match failure.exit_code {
            1 => Failure { exit_code: ERROR, ..failure },
            _ => failure,
        })?;
        if has_results { Ok(()) } else { Err(Failure::without_message()) }
    }

    /// Searches and prints the results. Returns true if there are any.
    fn search(self, printer: Printer, environment: &Environment) -> Result<bool, Failure> {
        let settings = self.source.settings(environment)?;
        let source = joined(open_sources(&settings, environment, WITH_WHOLE_INDEX)?, settings.call_deadline)?;
        let source = source.reranked_by(reranking(&settings, environment));
        let toolbox = toolbox(source, settings.call_deadline, &settings.protection)?;
        let since = self.since.map(|since| format!("since:{since}"));
        // The end of a very long query is not searched, so the age comes first.
        let query = since.into_iter().chain(self.words).collect::<Vec<_>>().join(" ");
        let matched =
            MatchedWords::new(&parse_query(&query, &toolbox.local(toolbox.now())).text().plain_words());
        let mut arguments = RecordData::new();
        arguments.insert("query".to_owned(), query.into());
        arguments.insert("limit".to_owned(), self.limit.into());
        arguments.insert("mode".to_owned(), SearchMode::from(self.mode).as_str().into());
        arguments.extend(self.connection_id.map(|id| ("connection_id".to_owned(), id.into())));
        if !self.stream.is_empty() {
            arguments.insert("streams".to_owned(), self.stream.into());
        }
        let (payload, explanation) = runtime()?.block_on(answer(&toolbox, arguments, self.explain))?;
        let (_, mut value) = payload.into_parts();
        // A cursor is valid as long as the process that issued it, which ends now.
        let more = value.as_object_mut().and_then(|fields| fields.remove("next_cursor")).is_some();
        let is_empty = value.get("results").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if printer.json {
            if let (true, Some(fields)) = (more, value.as_object_mut()) {
                fields.insert("more".to_owned(), json!(true));
            }
            if let (Some(explanation), Some(fields)) = (explanation, value.as_object_mut()) {
                fields.insert("explanation".to_owned(), json!(explanation));
            }
            printer.value(&value);
        } else {
            let explanation = explanation.unwrap_or_default();
            print_results(printer, &value, &explanation, &matched);
            if !explanation.stages.is_empty() {
                printer.styled(Line::default().styled(STRONG, "stages"));
                print_lines(printer, "    ", &stage_lines(&explanation.stages));
            }
            print_notes(&value, more);
        }
        Ok(!is_empty)
    }
}

/// Calls the tool, and explains its results if that is asked for.
async fn answer(
    toolbox: &Toolbox,
    arguments: RecordData,
    explains: bool,
) -> Result<(Payload, Option<SearchExplanation>), Failure> {
    if !explains {
        return Ok((call(toolbox, "search", arguments).await?, None));
    }
    let answer = toolbox.search_explained(arguments).await;
    let ExplainedSearch { payload, explanation } = answer.map_err(|error| Failure::from_tool(&error))?;
    Ok((payload, Some(explanation)))
}

/// Prints the results of an answer, each with its explanation if there is one.
fn print_results(printer: Printer, value: &Value, explanation: &SearchExplanation, matched: &MatchedWords) {
    let mut explained = explanation.results.iter();
    for result in results(value) {
        let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
        printer.styled(Line::default().styled(STRONG, text("title")));
        let copies = match result.get("copies").and_then(Value::as_u64) {
            Some(1) => "1 near-copy".to_owned(),
            Some(copies) => format!("{copies} near-copies"),
            None => String::new(),
        };
        let beside = [text("id"), text("date"), text("match"), &copies];
        let beside: Vec<&str> = beside.into_iter().filter(|text| !text.is_empty()).collect();
        printer.line(format_args!("  {}", beside.join("  ")));
        if !text("text").is_empty() {
            printer.styled(Line::default().text("  ").joined(matched.highlight(text("text"))));
        }
        if !text("url").is_empty() {
            printer.styled(Line::default().text("  ").styled(FAINT, text("url")));
        }
        if let Some(explanation) = explained.next() {
            print_lines(printer, "    ", &explanation_lines(explanation));
        }
    }
}

/// Prints lines with aligned labels.
fn print_lines(printer: Printer, indent: &str, lines: &[ExplanationLine]) {
    let width = |line: &ExplanationLine| Line::from(line.label.clone()).width();
    let widest = lines.iter().map(width).max().unwrap_or(0).min(MAX_LABEL_WIDTH);
    for line in lines {
        let padding = " ".repeat(widest.saturating_sub(width(line)) + 2);
        let label = Line::default().text(indent).styled(FAINT, &line.label).text(padding);
        printer.styled(label.text(&line.text));
    }
}

fn results(value: &Value) -> &[Value] {
    value.get("results").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// Prints what an answer says beside its results.
fn print_notes(value: &Value, more: bool) {
    if let Some(dates) = value.get("dates").and_then(Value::as_str) {
        note(&format_args!("dates: {dates}"));
    }
    for warning in value.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        note(&with_option_names(warning.as_str().unwrap_or_default()));
    }
    for source in value.get("unavailable").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| source.get(name).and_then(Value::as_str);
        let (name, code) = (part("source").unwrap_or_default(), part("code").unwrap_or_default());
        note(&describe_failure(name, code, part("hint")));
    }
    let omitted = value.get("omitted").and_then(Value::as_u64).unwrap_or(0);
    if omitted > 0 {
        let omitted = if omitted == 1 {
            "1 result is omitted: it has no id that can be fetched, or does not fit into an answer".to_owned()
        } else {
            format!(
                "{omitted} results are omitted: they have no id that can be fetched, or do not fit into an answer"
            )
        };
        note(&omitted);
    }
    match (results(value).len(), more) {
        (0, _) if omitted > 0 => {}
        (0, _) => {
            note(&"nothing found");
            if let Some(hint) = value.get("hint").and_then(Value::as_str) {
                note(&with_option_names(hint));
            }
        }
        (_, true) => note(&"there is more: raise --limit"),
        _ => {}
    }
}

/// Words of a query in lower case, to highlight in excerpts.
#[derive(Debug)]
struct MatchedWords(Vec<String>);

impl MatchedWords {
    fn new(text: &str) -> Self {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        Self(words.map(str::to_lowercase).collect())
    }

    /// Returns a text in which the words that begin with one of the query are bold.
    fn highlight(&self, text: &str) -> Line {
        let mut line = Line::default();
        let (mut unmarked, mut start) = (0, 0);
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let end = start + word.len();
            let lower = word.to_lowercase();
            if self.0.iter().any(|query| lower.starts_with(query.as_str())) {
                line = line.styled(FAINT, text.get(unmarked..start).unwrap_or_default()).styled(STRONG, word);
                unmarked = end;
            }
            start = end + text.get(end..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
        line.styled(FAINT, text.get(unmarked..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_query_are_bold() {
        let line =
            MatchedWords::new("invoice \"Über\"").highlight("(2 Invoices, über-new \u{1b}[2J)").to_string();
        for part in ["\u{1b}[1mInvoices\u{1b}[0m", "\u{1b}[1müber\u{1b}[0m", "\\u{1b}"] {
            assert!(line.contains(part), "{line:?}");
        }
        assert!(!line.contains("\u{1b}[1mnew") && !line.contains("\u{1b}[2J"), "{line:?}");
        assert_eq!(MatchedWords::new("").highlight("x").to_string(), "\u{1b}[2mx\u{1b}[0m");
    }
}
