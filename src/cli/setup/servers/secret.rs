//! Recognition of secrets in the entries of clients.
//!
//! Values of variables and headers are secrets unless an allow-list has their form. Words of command lines and parts of URLs
//! are none unless they have the form or the name of a secret, because package names and paths have any form.

use std::mem;

use url::Url;

/// Parts of the names of secrets.
const SECRET_PARTS: [&str; 20] = [
    "token",
    "secret",
    "passw",
    "passphrase",
    "credential",
    "cookie",
    "bearer",
    "authorization",
    "private",
    "signature",
    "session",
    "jwt",
    "webhook",
    "access",
    "login",
    "license",
    "apikey",
    "connection",
    "dsn",
    "salt",
];

/// Words of the names of secrets, between characters that are no letters.
const SECRET_WORDS: [&str; 10] = ["key", "keys", "pass", "pwd", "pw", "auth", "pat", "pin", "sid", "code"];

/// Beginnings of secrets of known services, and of headers with a secret.
const SECRET_STARTS: [&str; 16] = [
    "sk-",
    "pk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
    "xapp-",
    "eyJ",
    "AKIA",
    "ntn_",
    "secret_",
    "lin_api_",
    "hf_",
];

/// Flags of a command line with a header as their value.
const HEADER_FLAGS: [&str; 3] = ["-H", "--header", "--headers"];

/// Words that are values of settings and never secrets.
const PLAIN_WORDS: [&str; 26] = [
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "none",
    "auto",
    "default",
    "trace",
    "debug",
    "info",
    "warn",
    "warning",
    "error",
    "production",
    "development",
    "test",
    "stdio",
    "http",
    "https",
    "json",
    "text",
    "utf-8",
    "readonly",
    "read-only",
];

/// Maximum number of digits of a number that is no secret.
const MAX_PLAIN_DIGITS: usize = 6;

/// Minimum length of a random word, and the minimum number of its letters, and of its digits or letters of each case.
const MIN_RANDOM_LENGTH: usize = 16;
const MIN_RANDOM_KIND: usize = 4;

/// Maximum length of a part of a plain host name, in bytes.
const MAX_PLAIN_LABEL: usize = 24;

/// Returns true for the name of a variable, header or flag whose value is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("key")
        || name.split(|c: char| !c.is_ascii_alphabetic()).any(|word| SECRET_WORDS.contains(&word))
}

/// Returns true for a value that is no secret: a switch, a small number, a path, a host, an e-mail address or a URL.
pub(super) fn is_plain(name: &str, value: &str) -> bool {
    if is_secret_name(name) || value.chars().any(char::is_control) || is_random(value) {
        return false;
    }
    let is_number = value.len() <= MAX_PLAIN_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = PLAIN_WORDS.iter().any(|word| word.eq_ignore_ascii_case(value));
    let is_address = value.split_once('@').is_some_and(|(user, host)| {
        let is_user = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        !user.is_empty() && user.chars().all(is_user) && is_host(host)
    });
    is_number || is_word || is_path(value) || is_host(value) || is_address || is_plain_url(value)
}

/// Returns true for a URL of HTTP without a user, a query and a part that looks random.
pub(super) fn is_plain_url(text: &str) -> bool {
    text.starts_with("http") && is_plain_location(text)
}

fn is_plain_location(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && !is_random(url.path())
}

/// Returns true if a word of a command line looks like a secret, or follows the flag of one.
pub(super) fn has_secret<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    let mut is_value = false;
    words.into_iter().flat_map(str::split_whitespace).any(|word| {
        let is_flag = word.starts_with('-');
        let names_secret = (is_flag || word.ends_with(':')) && !word.contains('=') && is_secret_name(word);
        let is_next = names_secret || HEADER_FLAGS.contains(&word);
        let was_named = mem::replace(&mut is_value, is_next);
        (was_named && !is_flag) || is_secret_word(word)
    })
}

fn is_secret_word(word: &str) -> bool {
    if word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic") {
        return true;
    }
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && is_secret_name(name)
    {
        return true;
    }
    if word.contains("://") {
        let url = word.find("http").and_then(|start| word.get(start..)).unwrap_or(word);
        return !is_plain_location(url);
    }
    !is_path(word) && is_random(word)
}

/// Returns true for an absolute path, which no secret is.
fn is_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_windows = matches!(bytes, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    let is_unix = matches!(bytes, [b'/', ..] | [b'~', b'/', ..]);
    // A secret in Base64 can begin with a slash.
    (is_unix && !text.contains(['+', '='])) || is_windows
}

/// Returns true for a host name of short labels, such as `acme.example.com`.
fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_character = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.len() <= MAX_PLAIN_LABEL && label.chars().all(is_character)
    };
    text == "localhost" || (text.contains('.') && text.split('.').all(is_label))
}

/// Returns true if a word of a text looks random or begins like a secret of a known service.
fn is_random(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_+=".contains(c);
    let mut words = text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty());
    words.any(|word| SECRET_STARTS.iter().any(|start| word.starts_with(start)) || has_random_letters(word))
}

fn has_random_letters(word: &str) -> bool {
    let count = |is_counted: fn(&u8) -> bool| word.as_bytes().iter().filter(|byte| is_counted(byte)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let digits = count(u8::is_ascii_digit);
    let is_mixed = digits >= MIN_RANDOM_KIND || (upper >= MIN_RANDOM_KIND && lower >= MIN_RANDOM_KIND);
    word.len() >= MIN_RANDOM_LENGTH && upper + lower >= MIN_RANDOM_KIND && is_mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_of_known_forms_are_plain() {
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("PORT", "8080"),
            ("VAULT", "/home/ann/Notes"),
            ("HOME_URL", "https://acme.example.com/wiki"),
            ("SITE", "acme.example.com"),
            ("EMAIL", "ann.b@example.com"),
            ("ROOT", "C:\\Users\\Ann"),
        ] {
            assert!(is_plain(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("API_KEY", "debug"),
            ("apiKey", "1"),
            ("DB_PASSWORD", "hunter"),
            ("X-Auth", "1"),
            ("ACCOUNT", "hunter"),
            ("ACCOUNT", "12345678"),
            ("ACCOUNT", "4f9d2c81b7aa4e0c9d55"),
            ("HOOK", "https://hooks.example.com/services/T0000/B00000000/WkQmZrTyBn12VcXs"),
            ("DB", "postgres://ann:pw@db.example.com/x"),
            ("URL", "https://example.com/?q=1"),
            ("ACCOUNT", "ghp_x"),
            ("ACCOUNT", "debug\n"),
            ("ROOT", "/ab+cd="),
        ] {
            assert!(!is_plain(name, value), "{name}={value}");
        }
    }

    #[test]
    fn command_lines_have_secrets_in_flags_urls_and_random_words() {
        for line in [
            "npx -y @modelcontextprotocol/server-filesystem@2025.11.25 /home/ann/notes-2026-11-25-final",
            "uvx basic-memory mcp --project main",
            "docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server",
            "npx mcp-remote https://mcp.example.com/mcp --transport http-only",
            "server --auth-port= --cache redis://localhost:6379",
        ] {
            assert!(!has_secret([line]), "{line}");
        }
        for words in [
            &["server", "--token", "abc"][..],
            &["server", "--api-key=abc"],
            &["docker", "run", "-e", "GITHUB_TOKEN=abc"],
            &["npx", "mcp-remote", "https://x.example", "--header", "X-Key: abc"],
            &["sh", "-c", "NOTES_PASSWORD=abc exec server"],
            &["psql-mcp", "postgresql://ann:abc@db/x"],
            &["server", "https://x.example/mcp?key=abc"],
            &["server", "sk-abc"],
            &["server", "4f9d2c81b7aa4e0c9d55"],
            &["server", "Authorization: Bearer abc"],
        ] {
            assert!(has_secret(words.iter().copied()), "{words:?}");
        }
    }
}
