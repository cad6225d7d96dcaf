//! `fetchwell tokens`: counts or estimates the tokens of a text, with the estimators of answers.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use fetchwell_core::fit::{Estimator, budget, count_tokens};
use fetchwell_core::saturate::saturated;
use serde::Serialize;

use super::print::Printer;
use crate::app::failure::Failure;

/// Maximum size of a text in bytes; all of it is read into memory.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// Count the tokens of a text, or estimate them as answers do.
#[derive(Debug, Args)]
pub(super) struct Tokens {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the number of tokens of a text: the value of `meta.budget.estimatedTokens`, or with --exact the exact count.
    Count(Count),
}

#[derive(Debug, Args)]
struct Count {
    /// The text, in UTF-8; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// The estimator.
    #[arg(long, value_enum, default_value_t = EstimatorName::O200k)]
    estimator: EstimatorName,

    /// Count every token, without a cap.
    #[arg(long, conflicts_with = "cap")]
    exact: bool,

    /// Count up to this number of tokens, and estimate the rest.
    #[arg(long, value_name = "N", default_value_t = budget::DOCUMENT_TOKENS)]
    cap: usize,
}

/// Estimators by their names in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EstimatorName {
    /// Counted with OpenAI's `o200k`.
    O200k,
    /// A quarter of the characters, plus a fifth.
    Chars4,
}

/// Size of a text.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct TokenCount {
    tokens: usize,
    bytes: usize,
    chars: usize,
    estimator: &'static str,
    /// True if every token was counted.
    exact: bool,
}

/// Reason why a text cannot be counted.
#[derive(Debug, thiserror::Error)]
enum TextError {
    #[error("{0} cannot be read ({1}); name a file, or - for standard input")]
    Unreadable(String, std::io::Error),
    #[error("{0} is larger than 64 MiB; count it in pieces")]
    TooLarge(String),
    #[error("{0} is not UTF-8 text; only text has tokens")]
    NotUtf8(String),
    #[error("`chars4` is an estimate, not a count; remove --exact or --estimator")]
    NeverExact,
}

impl Tokens {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let Command::Count(count) = self.command;
        let counted = count.count().map_err(|problem| match problem {
            TextError::NeverExact => Failure::usage(&problem),
            other => Failure::new(other.to_string()),
        })?;
        if printer.json {
            printer.value(&counted);
            return Ok(());
        }
        let about = if counted.exact { "" } else { "about " };
        printer.line(format_args!("{about}{} tokens", counted.tokens));
        Ok(())
    }
}

impl Count {
    fn count(&self) -> Result<TokenCount, TextError> {
        if self.exact && self.estimator == EstimatorName::Chars4 {
            return Err(TextError::NeverExact);
        }
        let text = read(&self.file)?;
        let tokens = match self.estimator {
            EstimatorName::O200k if self.exact => count_tokens(&text),
            EstimatorName::O200k => Estimator::O200k.tokens(&text, self.cap),
            EstimatorName::Chars4 => Estimator::Chars4.tokens(&text, self.cap),
        };
        let is_counted = self.estimator == EstimatorName::O200k && (self.exact || tokens <= self.cap);
        Ok(TokenCount {
            tokens,
            bytes: text.len(),
            chars: text.chars().count(),
            estimator: match self.estimator {
                EstimatorName::O200k => "o200k",
                EstimatorName::Chars4 => "chars4",
            },
            exact: is_counted,
        })
    }
}

fn read(path: &Path) -> Result<String, TextError> {
    if path == Path::new("-") {
        return read_within("standard input", stdin().lock(), MAX_TEXT_BYTES);
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|problem| TextError::Unreadable(name.clone(), problem))?;
    read_within(&name, file, MAX_TEXT_BYTES)
}

/// Reads a text of at most `max_bytes` bytes; of a larger one no more than that is read.
fn read_within(name: &str, from: impl Read, max_bytes: usize) -> Result<String, TextError> {
    let mut bytes = Vec::new();
    let limit = saturated::<u64>(max_bytes).saturating_add(1);
    let read = from.take(limit).read_to_end(&mut bytes);
    read.map_err(|problem| TextError::Unreadable(name.to_owned(), problem))?;
    if bytes.len() > max_bytes {
        return Err(TextError::TooLarge(name.to_owned()));
    }
    String::from_utf8(bytes).map_err(|_no_text| TextError::NotUtf8(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_limit() {
        assert_eq!(read_within("it", "1234".as_bytes(), 4).unwrap(), "1234");
        assert!(matches!(read_within("it", "12345".as_bytes(), 4), Err(TextError::TooLarge(_))));
        // The input never ends.
        assert!(matches!(read_within("it", std::io::repeat(b'x'), 100_000), Err(TextError::TooLarge(_))));
        assert!(matches!(read_within("it", [0xFF_u8].as_slice(), 4), Err(TextError::NotUtf8(_))));
    }
}
