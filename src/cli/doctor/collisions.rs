//! What several sources have at the same time, so that a handle does not say whose it is.

use std::collections::BTreeMap;

use super::Check;
use super::checks::Examined;
use crate::config::SourceSettings;

/// Collisions that are named; the rest are counted.
const NAMED_MOST: usize = 12;

/// Connections of the same id in several sources, and places that are configured twice.
pub(super) fn collisions(settings: &[SourceSettings], examined: &[Examined]) -> Vec<Check> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (source, examined) in settings.iter().zip(examined) {
        for connection in examined.schema.iter().flat_map(|schema| &schema.connections) {
            owners.entry(connection.connection_id.as_str()).or_default().push(source.name.as_str());
        }
    }
    let shared: Vec<(&str, Vec<&str>)> = owners.into_iter().filter(|(_, owners)| owners.len() > 1).collect();
    let mut checks = twice(settings);
    let rest = shared.len().saturating_sub(NAMED_MOST);
    for (connection, owners) in shared.into_iter().take(NAMED_MOST) {
        checks.push(noted(
            format!("connection `{connection}` is in {}", listed(&owners)),
            "calls about it have to name the `source`; give it another id in one of them, or take one out"
                .to_owned(),
        ));
    }
    if rest > 0 {
        checks.push(noted(format!("{rest} more connections are in several sources"), String::new()));
    }
    checks
}

/// The same store or server under two names. It is allowed, since each can show other streams.
fn twice(settings: &[SourceSettings]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (at, source) in settings.iter().enumerate() {
        if let Some(earlier) = settings.iter().take(at).find(|earlier| earlier.place == source.place) {
            checks.push(noted(
                format!("{} are the same place", listed(&[earlier.name.as_str(), source.name.as_str()])),
                format!("unless that is meant, run `fetchwell source remove {}`", source.name),
            ));
        }
    }
    checks
}

fn noted(found: String, remedy: String) -> Check {
    Check::of_all("collision", Ok(found)).warning(Some(remedy))
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
