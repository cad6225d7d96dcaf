//! `fetchwell search`: prints the results that a client would get.

use clap::Args;
use fetchwell_core::record::RecordData;
use fetchwell_core::terminal::Line;
use fetchwell_core::terminal::output::note;
use fetchwell_source::SearchMode;
use fetchwell_tools::{parse_query, parse_since};
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
        let payload = runtime()?.block_on(call(&toolbox, "search", arguments))?;
        let (_, mut value) = payload.into_parts();
        // A cursor is valid as long as the process that issued it, which ends now.
        let more = value.as_object_mut().and_then(|fields| fields.remove("next_cursor")).is_some();
        let is_empty = value.get("results").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if printer.json {
            if let (true, Some(fields)) = (more, value.as_object_mut()) {
                fields.insert("more".to_owned(), json!(true));
            }
            printer.value(&value);
        } else {
            print_text(printer, &value, more, &matched);
        }
        Ok(!is_empty)
    }
}

fn print_text(printer: Printer, value: &Value, more: bool, matched: &MatchedWords) {
    let results = value.get("results").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for result in results {
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
    }
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
    match (results.len(), more) {
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
