//! Tells databases from files where commands and configurations name a store.

use std::path::Path;

/// Schemes of the URLs of databases.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Returns true if a text names a database and not a file.
#[must_use]
pub fn is_database_url(text: &str) -> bool {
    SCHEMES
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// Returns true if the path of a store is the URL of a database. Such a path is not shown, since it may have a password.
#[must_use]
pub fn is_database(path: &Path) -> bool {
    path.to_str().is_some_and(is_database_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_are_no_paths() {
        for text in ["postgres://h/d", "PostgreSQL://h/d", "postgres://"] {
            assert!(is_database_url(text) && is_database(Path::new(text)), "{text}");
        }
        for text in ["notes.db", "postgres.db", "/srv/postgres:/x", "postgres:/", "é", ""] {
            assert!(!is_database_url(text), "{text}");
        }
    }
}
