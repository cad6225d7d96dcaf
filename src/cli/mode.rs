//! `--mode` of commands that search.

use clap::ValueEnum;
use fetchwell_source::SearchMode;

/// Modes of a search by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeName {
    /// Match by words and meaning where there are vectors of the configured model, else by words.
    Auto,
    /// Match by words.
    Lexical,
    /// Match by meaning.
    Semantic,
    /// Match by words and meaning.
    Hybrid,
}

impl From<ModeName> for SearchMode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Auto => Self::Auto,
            ModeName::Lexical => Self::Lexical,
            ModeName::Semantic => Self::Semantic,
            ModeName::Hybrid => Self::Hybrid,
        }
    }
}
