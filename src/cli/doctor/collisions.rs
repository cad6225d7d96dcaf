//! Checks for ids that several sources share, so that a handle is ambiguous.

use std::collections::BTreeMap;

use super::check::Check;
use super::checks::SourceChecks;
use crate::config::SourceSettings;

/// Maximum number of collisions that are listed; the rest are counted.
const MAX_NAMED: usize = 12;

/// Checks for connections of the same id in several sources, and for sources configured twice.
pub(super) fn collisions(settings: &[SourceSettings], examined: &[SourceChecks]) -> Vec<Check> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (source, examined) in settings.iter().zip(examined) {
        for connection in examined.schema.iter().flat_map(|schema| &schema.connections) {
            owners.entry(connection.connection_id.as_str()).or_default().push(source.name.as_str());
        }
    }
    let shared: Vec<(&str, Vec<&str>)> = owners.into_iter().filter(|(_, owners)| owners.len() > 1).collect();
    let mut checks = duplicate_places(settings);
    let rest = shared.len().saturating_sub(MAX_NAMED);
    for (connection, owners) in shared.into_iter().take(MAX_NAMED) {
        checks.push(warning_check(
            format!("connection `{connection}` is in {}", listed(&owners)),
            "calls must name the `source`; give the connection another id in one of them, or remove one"
                .to_owned(),
        ));
    }
    if rest > 0 {
        checks.push(warning_check(format!("{rest} more connections are in several sources"), String::new()));
    }
    checks
}

/// Checks for sources with the same store or server. That is allowed, since each can show other streams.
fn duplicate_places(settings: &[SourceSettings]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (at, source) in settings.iter().enumerate() {
        if let Some(earlier) = settings.iter().take(at).find(|earlier| earlier.place == source.place) {
            checks.push(warning_check(
                format!("{} are the same place", listed(&[earlier.name.as_str(), source.name.as_str()])),
                format!("unless this is intended, run `fetchwell source remove {}`", source.name),
            ));
        }
    }
    checks
}

fn warning_check(found: String, remedy: String) -> Check {
    Check::for_all("collision", Ok(found)).warning(Some(remedy))
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
