//! The extension `vector` of a database, which documents and search by meaning need.

use std::fmt;

use fetchwell_source::ExtensionStatus;
use tokio_postgres::Row;

/// Oldest version with iterative scans, without which a filtered search misses hits.
const MIN_VERSION: [u32; 3] = [0, 8, 0];

/// Oldest version without known faults of its index.
const GOOD_VERSION: [u32; 3] = [0, 8, 4];

/// Columns of the state: the version in the database, the version that the server offers, and true if the role may create
/// the extension.
pub(crate) const PGVECTOR_COLUMNS: &str = "(SELECT extversion FROM pg_extension WHERE extname = 'vector'),
     (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
     EXISTS (SELECT 1 FROM pg_available_extension_versions WHERE name = 'vector' AND (NOT superuser
         OR trusted AND has_database_privilege(current_database(), 'CREATE')
         OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)))";

/// State of the extension `vector`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PgvectorState {
    /// The server does not have the extension.
    Unavailable,
    /// The server has the extension, and the database does not.
    NotCreated {
        /// True if the role may create it.
        can_create: bool,
    },
    /// The version is older than 0.8.0.
    TooOld(String),
    /// Version in the database.
    Created(String),
}

impl PgvectorState {
    /// Reads the state from [`PGVECTOR_COLUMNS`], of which the first is at `at`.
    pub(crate) fn from_row(row: &Row, at: usize) -> Self {
        let version = |column: usize| row.try_get::<_, Option<String>>(column).ok().flatten();
        match (version(at), version(at + 1)) {
            (Some(found), _) if is_usable(&found) => Self::Created(found),
            (Some(found), _) => Self::TooOld(found),
            (None, Some(offered)) if !is_usable(&offered) => Self::TooOld(offered),
            (None, Some(_)) => Self::NotCreated { can_create: row.try_get(at + 2).unwrap_or_default() },
            (None, None) => Self::Unavailable,
        }
    }

    /// Returns true if documents and vectors can be stored.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        matches!(self, Self::Created(_))
    }

    /// Returns the reason why documents and vectors cannot be stored, with the remedy; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Created(_) => None,
            Self::Unavailable => Some(
                "the server has no pgvector; install pgvector 0.8.0 or later on it, then run `CREATE EXTENSION vector` in \
                 the database as a superuser"
                    .to_owned(),
            ),
            Self::NotCreated { .. } => Some(
                "pgvector is not created in the database; run `CREATE EXTENSION vector` in it as a superuser".to_owned(),
            ),
            Self::TooOld(version) => Some(format!(
                "pgvector {version} is older than 0.8.0; install a later one on the server, then run `ALTER EXTENSION \
                 vector UPDATE` in the database as a superuser"
            )),
        }
    }
}

impl PgvectorState {
    /// Returns the state for `/health`.
    pub(crate) fn status(&self) -> ExtensionStatus {
        let (state, version) = match self {
            Self::Unavailable => ("absent", None),
            Self::NotCreated { .. } => ("not_created", None),
            Self::TooOld(version) => ("too_old", Some(version.clone())),
            Self::Created(version) => ("present", Some(version.clone())),
        };
        let remedy = self.problem().or_else(|| self.advice());
        ExtensionStatus { state, version, remedy }
    }

    /// Returns the advice on a version that can be used and has known faults.
    fn advice(&self) -> Option<String> {
        match self {
            Self::Created(version) if !is_at_least(version, GOOD_VERSION) => {
                Some(format!("pgvector {version} should be upgraded to 0.8.4 or later"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for PgvectorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.problem(), self.advice()) {
            (_, Some(problem), _) => {
                write!(f, "projects of documents and vectors cannot be used, records can: {problem}")
            }
            (_, None, Some(advice)) => f.write_str(&advice),
            (Self::Created(version), None, None) => write!(f, "pgvector {version}"),
            (_, None, None) => Ok(()),
        }
    }
}

/// Returns true for version 0.8.0 and later.
fn is_usable(version: &str) -> bool {
    is_at_least(version, MIN_VERSION)
}

fn is_at_least(version: &str, min_version: [u32; 3]) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let found: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    found >= min_version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_named_with_its_remedy() {
        let version = |version: &str| version.to_owned();
        for (state, name, remedy) in [
            (PgvectorState::Unavailable, "absent", Some("install pgvector")),
            (PgvectorState::NotCreated { can_create: false }, "not_created", Some("CREATE EXTENSION vector")),
            (PgvectorState::TooOld(version("0.7.4")), "too_old", Some("ALTER EXTENSION vector UPDATE")),
            (PgvectorState::Created(version("0.8.1")), "present", Some("should be upgraded")),
            (PgvectorState::Created(version("0.8.5")), "present", None),
        ] {
            let status = state.status();
            assert_eq!(status.state, name);
            let found = status.remedy.unwrap_or_default();
            assert!(found.contains(remedy.unwrap_or_default()), "{found}");
            assert_eq!(found.is_empty(), remedy.is_none(), "{found}");
            assert!(state.to_string().contains(&found), "{state}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_at_least("0.8.10", GOOD_VERSION) && !is_at_least("0.8.3", GOOD_VERSION));
        for usable in ["0.8.0", "0.8.5", "0.10.0", "1.0"] {
            assert!(is_usable(usable), "{usable}");
        }
        for old in ["0.7.4", "0.5", "", "x"] {
            assert!(!is_usable(old), "{old}");
        }
    }
}
