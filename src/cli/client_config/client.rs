//! The clients, and the files that hold their configuration.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use directories::BaseDirs;
use serde::Serialize;

/// A client with a configuration of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Desktop.
    #[value(alias = "claude-desktop")]
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Windsurf, an editor.
    Windsurf,
    /// Zed, an editor.
    Zed,
    /// Gemini CLI of Google.
    Gemini,
    /// opencode, a coding agent.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
    /// Continue, an extension of editors.
    Continue,
    /// Cline, an extension of editors.
    Cline,
    /// ChatGPT.
    Chatgpt,
}

/// Path of a client's file on each operating system. `~` is the home folder, and `%APPDATA%` the folder of applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigFile {
    linux: &'static str,
    macos: &'static str,
    windows: &'static str,
}

impl ConfigFile {
    /// Returns the path on this operating system as users write it.
    pub(crate) fn here(&self) -> &'static str {
        match std::env::consts::OS {
            "macos" => self.macos,
            "windows" => self.windows,
            _ => self.linux,
        }
    }

    /// Returns the path on this operating system. `XDG_CONFIG_HOME` replaces `~/.config` on Linux.
    pub(crate) fn resolve(&self, folders: &BaseDirs) -> PathBuf {
        let path = self.here();
        let below = |prefix: &str| path.strip_prefix(prefix).map(|rest| rest.replace('\\', "/"));
        let is_linux = !cfg!(any(windows, target_os = "macos"));
        if let Some(rest) = below("~/.config/").filter(|_| is_linux) {
            return folders.config_dir().join(rest);
        }
        if let Some(rest) = below("%APPDATA%\\") {
            return folders.config_dir().join(rest);
        }
        let rest = below("~/").or_else(|| below("%USERPROFILE%\\"));
        rest.map_or_else(|| Path::new(path).to_owned(), |rest| folders.home_dir().join(rest))
    }
}

/// Describes a file at the same path below the home folder on each operating system.
macro_rules! in_home {
    ($unix:literal, $windows:literal) => {
        ConfigFile {
            linux: concat!("~/", $unix),
            macos: concat!("~/", $unix),
            windows: concat!("%USERPROFILE%\\", $windows),
        }
    };
}

impl Client {
    /// Returns the name of the client for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
            Self::Continue => "Continue",
            Self::Cline => "Cline",
            Self::Chatgpt => "ChatGPT",
        }
    }

    /// Returns the user's file of the client, or `None` for a client without one. Each path is that of the documentation
    /// named beside it.
    pub(crate) fn file(self) -> Option<ConfigFile> {
        Some(match self {
            // modelcontextprotocol.io/docs/develop/connect-local-servers. It names no file for Linux: an Electron
            // application keeps its files in ~/.config.
            Self::Claude => ConfigFile {
                linux: "~/.config/Claude/claude_desktop_config.json",
                macos: "~/Library/Application Support/Claude/claude_desktop_config.json",
                windows: "%APPDATA%\\Claude\\claude_desktop_config.json",
            },
            // code.claude.com/docs/en/mcp, the scope `user`
            Self::ClaudeCode => in_home!(".claude.json", ".claude.json"),
            // developers.openai.com/codex/config-reference
            Self::Codex => in_home!(".codex/config.toml", ".codex\\config.toml"),
            // docs.cursor.com/context/mcp
            Self::Cursor => in_home!(".cursor/mcp.json", ".cursor\\mcp.json"),
            // code.visualstudio.com/docs/copilot/customization/mcp-servers, the user's configuration
            Self::Vscode => ConfigFile {
                linux: "~/.config/Code/User/mcp.json",
                macos: "~/Library/Application Support/Code/User/mcp.json",
                windows: "%APPDATA%\\Code\\User\\mcp.json",
            },
            // docs.windsurf.com/windsurf/cascade/mcp
            Self::Windsurf => {
                in_home!(".codeium/windsurf/mcp_config.json", ".codeium\\windsurf\\mcp_config.json")
            }
            // zed.dev/docs/configuring-zed
            Self::Zed => ConfigFile {
                linux: "~/.config/zed/settings.json",
                macos: "~/.config/zed/settings.json",
                windows: "%APPDATA%\\Zed\\settings.json",
            },
            // geminicli.com/docs/tools/mcp-server
            Self::Gemini => in_home!(".gemini/settings.json", ".gemini\\settings.json"),
            // opencode.ai/docs/mcp-servers; opencode 2 reads the same file (opencode.ai/docs/migrate-v1)
            Self::Opencode => {
                in_home!(".config/opencode/opencode.json", ".config\\opencode\\opencode.json")
            }
            // docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
            Self::Copilot => in_home!(".copilot/mcp-config.json", ".copilot\\mcp-config.json"),
            // docs.continue.dev/customize/deep-dives/mcp
            Self::Continue => in_home!(".continue/config.yaml", ".continue\\config.yaml"),
            // docs.cline.bot/getting-started/config; earlier extensions keep it in the storage of VS Code
            Self::Cline => in_home!(
                ".cline/data/settings/cline_mcp_settings.json",
                ".cline\\data\\settings\\cline_mcp_settings.json"
            ),
            Self::Chatgpt => return None,
        })
    }
}

/// A snippet and the place that it belongs to.
pub(crate) struct Snippet {
    pub(crate) goes: String,
    pub(crate) text: String,
}

/// Quotes a word for a POSIX shell, if necessary.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_below_a_folder_of_the_user() {
        let folders = BaseDirs::new().unwrap();
        for client in Client::value_variants() {
            let Some(file) = client.file() else {
                assert_eq!(*client, Client::Chatgpt);
                continue;
            };
            assert!(file.linux.starts_with("~/") && file.macos.starts_with("~/"), "{file:?}");
            assert!(file.windows.starts_with('%') && !file.windows.contains('/'), "{file:?}");
            let path = file.resolve(&folders);
            let is_below = path.starts_with(folders.home_dir()) || path.starts_with(folders.config_dir());
            assert!(is_below && path.is_absolute(), "{}", path.display());
        }
    }
}
