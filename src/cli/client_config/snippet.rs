//! The clients, and snippets of their configuration.

use clap::ValueEnum;

/// A client with a configuration of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Client {
    /// Claude Desktop.
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// ChatGPT.
    Chatgpt,
}

/// A snippet and the place that it belongs to.
pub(in crate::cli) struct Snippet {
    pub(in crate::cli) goes: &'static str,
    pub(in crate::cli) text: String,
}

/// Quotes a word for a POSIX shell, if necessary.
pub(in crate::cli) fn shell_word(word: &str) -> String {
    if !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c)) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
