//! Environment variables of model hubs, as the programs of Hugging Face know them.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use directories::BaseDirs;
use fetchwell_embedding::HubSettings;
use secrecy::SecretString;

/// Maximum size of a file with a token, in bytes.
const MAX_TOKEN_FILE: u64 = 4_096;

/// Reads the settings of the hub: `HF_ENDPOINT`, `HF_TOKEN` or the file of a login, `HF_HOME`, `HF_HUB_CACHE` and
/// `HF_HUB_OFFLINE`.
#[must_use]
pub fn hub_settings() -> HubSettings {
    let home = path("HF_HOME").or_else(|| {
        let caches = path("XDG_CACHE_HOME").or_else(|| Some(BaseDirs::new()?.home_dir().join(".cache")))?;
        Some(caches.join("huggingface"))
    });
    let token_file = path("HF_TOKEN_PATH").or_else(|| Some(home.as_ref()?.join("token")));
    let from_file = || token_file.and_then(read_token).filter(|_| !is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN"));
    HubSettings {
        endpoint: text("HF_ENDPOINT"),
        token: text("HF_TOKEN").map(SecretString::from).or_else(from_file),
        cache: path("HF_HUB_CACHE").or_else(|| Some(home?.join("hub"))),
        is_offline: is_on("HF_HUB_OFFLINE"),
    }
}

/// Returns the token in the file of a login.
fn read_token(file: PathBuf) -> Option<SecretString> {
    let mut text = String::new();
    File::open(file).ok()?.take(MAX_TOKEN_FILE).read_to_string(&mut text).ok()?;
    Some(text.trim()).filter(|token| !token.is_empty()).map(SecretString::from)
}

fn path(name: &str) -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "these variables are another program's, and read here alone"
    )]
    let value = std::env::var_os(name);
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn text(name: &str) -> Option<String> {
    path(name).map(|value| value.to_string_lossy().trim().to_owned()).filter(|value| !value.is_empty())
}

fn is_on(name: &str) -> bool {
    text(name).is_some_and(|value| ["1", "true", "yes", "on"].contains(&value.to_ascii_lowercase().as_str()))
}
