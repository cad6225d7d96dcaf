//! The columns of the table of keys.

use crate::config::settings::FileSettings;
use crate::config::tree::Kind;

/// A configuration key.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// Full name, in which `[]` stands for the items of a list and `*` for any key.
    pub(crate) name: &'static str,
    /// Former names of the key in its table. They are still read, with a warning.
    pub(super) aliases: &'static [&'static str],
    /// Type and default.
    pub(crate) kind: Kind,
    /// Rule for a file that was found, not named.
    pub(crate) found: FoundFileRule,
    /// Parts of the value that operators see.
    pub(super) shown: Visibility,
    /// Effect of a reload with another value.
    pub(super) reload: Reload,
}

/// The values that a found file may set. Others require trust, some because of an action that the name of the key does
/// not say.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FoundFileRule {
    /// All valid values.
    Any,
    /// A URL of a server that is requested over `https`.
    HttpsUrl(&'static str),
    /// The credential of `pdpp connect`.
    PdppCache,
    /// A path on this machine.
    LocalPath(&'static str),
    /// No value: all require trust.
    Trust,
    /// No value, because of this action.
    TrustTo(&'static str),
}

/// The parts of a value that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// None of it, such as the hash of a token.
    Hidden,
    /// All of it: a number, a boolean, a duration, a name, an address or a path.
    Whole,
    /// Scheme, host and port of a URL.
    Origin,
    /// A path of a store, or the host, port and name of a database.
    Store,
    /// Scheme, host, port and number of a Redis database.
    Redis,
    /// The place of a secret: the name of a variable or a path. A command is hidden, since it may contain a secret.
    SecretPlace,
}

/// Comparison of the previous and the new settings: true if they differ.
pub(super) type HasChanged = fn(&FileSettings, &FileSettings) -> bool;

/// The effect of a reload with another value of a key.
#[derive(Clone, Copy)]
pub(super) enum Reload {
    /// Applies the value to the next call.
    Applied,
    /// Opens the sources again if the settings differ, and applies the value.
    Reopens(HasChanged),
    /// Keeps the previous value until the next start, with a warning for this key or table if the settings differ.
    Restart(&'static str, HasChanged),
    /// Does the same as for the table that the key is in.
    ByTable,
}

/// Creates a key that always had its name.
pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    found: FoundFileRule,
    shown: Visibility,
    reload: Reload,
) -> Key {
    Key { name, aliases: &[], kind, found, shown, reload }
}

/// Creates a table, which has no rule but those of its keys.
pub(super) const fn table(name: &'static str, kind: Kind, reload: Reload) -> Key {
    key(name, kind, FoundFileRule::Trust, Visibility::Hidden, reload)
}
