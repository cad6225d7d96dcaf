//! Names of fields beside those that an export adds.

use std::borrow::Cow;
use std::collections::HashSet;

/// Fields that tables and documents have before those of the record.
pub(super) const OWN_FIELDS: [&str; 2] = ["_key", "_emitted_at"];

/// Returns a name that is not in `known`, and adds it there: a name that is known gets a `_` at its end.
pub(super) fn distinct_name<'a>(mut name: Cow<'a, str>, known: &mut HashSet<Cow<'a, str>>) -> Cow<'a, str> {
    while !known.insert(name.clone()) {
        name.to_mut().push('_');
    }
    name
}
