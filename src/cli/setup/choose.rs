//! The questions on a terminal. Elsewhere nothing is asked, and nothing waits for an answer.

use std::io::{self, BufRead, IsTerminal};

use fetchwell_core::terminal::err_is_terminal;
use fetchwell_core::terminal::output::note;

use super::imports::Candidate;
use crate::app::failure::Failure;

/// Source of the user's choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chooser {
    /// Flags chose everything.
    Flags,
    /// The user is asked.
    Terminal,
    /// Nothing is done, because the user wants to see what would be done.
    DryRun,
    /// Nothing is done, because there is no one to ask.
    Unanswered,
}

impl Chooser {
    pub(super) fn new(has_choice: bool, is_dry_run: bool) -> Self {
        match (is_dry_run, has_choice) {
            (true, _) => Self::DryRun,
            (false, true) => Self::Flags,
            (false, false) if io::stdin().is_terminal() && err_is_terminal() => Self::Terminal,
            (false, false) => Self::Unanswered,
        }
    }

    /// Returns true if nothing is changed.
    pub(super) fn is_dry(self) -> bool {
        matches!(self, Self::DryRun | Self::Unanswered)
    }

    /// Returns true if the user could not choose.
    pub(super) fn is_unanswered(self) -> bool {
        self == Self::Unanswered
    }

    /// Returns the imports to do. Folders of files are imported only if the user names them.
    pub(super) fn imports(self, imports: Vec<Candidate>) -> Result<Vec<Candidate>, Failure> {
        let defaults = imports.iter().filter(|import| import.is_default()).count();
        let question = match defaults {
            0 => "Import which? Enter for none, `all`, or numbers such as 1,3",
            all if all == imports.len() => "Import which? Enter for all, `none`, or numbers such as 1,3",
            _ => "Import which? Enter for all but the folders, `all`, `none`, or numbers such as 1,3",
        };
        self.choose(imports, question, Candidate::is_default)
    }

    /// Returns the items that the user chooses on a terminal, or all defaults elsewhere.
    pub(super) fn choose<Item>(
        self,
        items: Vec<Item>,
        question: &str,
        is_default: impl Fn(&Item) -> bool,
    ) -> Result<Vec<Item>, Failure> {
        if self != Self::Terminal || items.is_empty() {
            return Ok(items.into_iter().filter(is_default).collect());
        }
        let defaults: Vec<usize> =
            items.iter().enumerate().filter(|(_, item)| is_default(item)).map(|(at, _)| at).collect();
        loop {
            note(&question);
            match parse_choice(&answer()?, items.len(), &defaults) {
                Ok(chosen) => {
                    let numbered = items.into_iter().enumerate();
                    return Ok(numbered
                        .filter(|(at, _)| chosen.contains(at))
                        .map(|(_, item)| item)
                        .collect());
                }
                Err(problem) => note(&problem),
            }
        }
    }

    /// Returns true if a change of a file is allowed.
    pub(super) fn allows_change(self, client: &str) -> Result<bool, Failure> {
        match self {
            Self::Flags => return Ok(true),
            Self::DryRun | Self::Unanswered => return Ok(false),
            Self::Terminal => {}
        }
        let question = format!("Make {client} use fetchwell? Enter or `y` for yes, `n` for no");
        self.ask(&question, |answer| match answer {
            "" | "y" | "yes" => Some(true),
            "n" | "no" => Some(false),
            _ => None,
        })
    }

    /// Asks a question on the terminal until the answer, in lower case, can be read.
    pub(super) fn ask<Answer>(
        self,
        question: &str,
        read: impl Fn(&str) -> Option<Answer>,
    ) -> Result<Answer, Failure> {
        loop {
            note(&question);
            if let Some(answer) = read(answer()?.to_lowercase().as_str()) {
                return Ok(answer);
            }
        }
    }
}

/// Reads a line. The end of the input ends the command, because it is no answer.
fn answer() -> Result<String, Failure> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(Failure::stopped("stopped: the input ended before an answer")),
        Ok(_) => Ok(line.trim().to_owned()),
        Err(error) => Err(Failure::new(format!("the answer cannot be read ({error})"))),
    }
}

/// Parses numbers that begin with 1, and returns them beginning with 0.
fn parse_choice(answer: &str, count: usize, defaults: &[usize]) -> Result<Vec<usize>, String> {
    match answer.to_lowercase().as_str() {
        "" | "y" | "yes" => return Ok(defaults.to_vec()),
        "all" => return Ok((0..count).collect()),
        "none" | "n" | "no" => return Ok(Vec::new()),
        _ => {}
    }
    let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
    let number = |word: &str| match word.parse::<usize>() {
        Ok(number) if (1..=count).contains(&number) => Ok(number - 1),
        _ => Err(format!("`{word}` is not a number from 1 to {count}")),
    };
    words.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_numbers_of_the_list() {
        for (answer, expect) in [
            ("", Ok(vec![0, 1])),
            ("all", Ok(vec![0, 1, 2])),
            ("y", Ok(vec![0, 1])),
            ("None", Ok(vec![])),
            ("1,3", Ok(vec![0, 2])),
            ("2, 1", Ok(vec![1, 0])),
            ("0", Err("`0` is not a number from 1 to 3".to_owned())),
            ("4", Err("`4` is not a number from 1 to 3".to_owned())),
            ("1-2", Err("`1-2` is not a number from 1 to 3".to_owned())),
        ] {
            assert_eq!(parse_choice(answer, 3, &[0, 1]), expect, "{answer}");
        }
    }
}
