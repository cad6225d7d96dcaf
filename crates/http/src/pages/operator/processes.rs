//! This process, and the Redis, databases and read replicas that it shares with others.

use fetchwell_source::BackendStatus;
use maud::{Markup, html};

use crate::ops::shared_state::SharedStateHealth;

/// Name of this process.
#[derive(Debug)]
pub(super) struct ProcessName {
    /// Name of the machine or container, if the system has it in a file.
    host: Option<String>,
    id: u32,
}

impl ProcessName {
    /// Reads the name of the machine.
    pub(super) fn read() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
        Self { host, id: std::process::id() }
    }
}

/// Renders the name of this process and what it shares with others.
pub(super) fn processes(
    name: &ProcessName,
    shared: Option<&SharedStateHealth>,
    backends: &[BackendStatus],
) -> Markup {
    html! {
        h2 { "Processes" }
        dl class="facts" {
            dt { "This process" }
            dd { @if let Some(host) = &name.host { code { (host) } ", " } "process " (name.id) }
            dt { "Shared state" }
            dd { (shared_state(shared)) }
        }
        @if !backends.is_empty() {
            div class="scroll" tabindex="0" role="region" aria-label="Places that sources read from" {
                table {
                    caption { "Places that sources read from. Connections are those of this process." }
                    thead { tr {
                        th scope="col" { "Source" } th scope="col" { "Place" } th scope="col" { "Connections" }
                        th scope="col" { "Read replicas" }
                    } }
                    tbody { @for backend in backends { tr {
                        th scope="row" { (backend.source) }
                        td { (backend.kind.as_str().replace('_', " ")) @if let Some(database) = &backend.database { " " code { (database) } } }
                        td { @if let Some(pool) = &backend.pool {
                            (pool.in_use) " of " (pool.maximum) " in use, " (pool.open) " open, " (pool.waiting) " calls wait"
                        } }
                        td { @for replica in &backend.replicas { div {
                            code { (replica.database) } ": "
                            @if replica.is_used { span class="good" { "read from" } } @else { span class="bad" { "not used" } }
                            @match replica.lag_ms { Some(lag) => { ", at most " (lag) " ms behind" }, None => ", lag unknown" }
                        } } }
                    } } }
                }
            }
        }
    }
}

fn shared_state(shared: Option<&SharedStateHealth>) -> Markup {
    html! {
        @match shared {
            None => "none: this process knows nothing of others",
            Some(state) => {
                (state.backend) " at " code { (state.address) } ", "
                span class=(if state.is_connected() { "good" } else { "bad" }) { (state.status) }
                ", " (state.commands) " commands of this process"
                @for (reason, count) in &state.failures { ", " (count) " failed with " code { (reason) } }
                @if state.rate_limit_uncounted > 0 { ", " (state.rate_limit_uncounted) " requests without a rate limit" }
                @if let Some(mismatch) = &state.key_mismatch { ". " span class="bad" { (mismatch.problem) } }
                ". Servers with the same address share cursors, sessions and limits; each has its own page."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ops::shared_state::KeyMismatchHealth;
    use fetchwell_source::{BackendKind, PoolUsage, ReplicaStatus};

    #[test]
    fn shared_places_are_named() {
        let name = ProcessName { host: Some("replica-<2>".to_owned()), id: 7 };
        let alone = processes(&name, None, &[]).into_string();
        assert!(alone.contains("replica-&lt;2&gt;") && alone.contains("knows nothing of others"), "{alone}");
        let shared = SharedStateHealth {
            backend: "redis",
            address: "redis://cache.example:6379/0".to_owned(),
            status: "unreachable",
            commands: 12,
            failures: BTreeMap::from([("unreachable", 3)]),
            rate_limit_uncounted: 4,
            key_mismatch: Some(KeyMismatchHealth {
                file: "cursor-keys.json",
                own_key: "a1".to_owned(),
                other_key: "b2".to_owned(),
                problem: "the keys differ".to_owned(),
            }),
        };
        let replica =
            ReplicaStatus { database: "replica:5432/mail".to_owned(), lag_ms: None, is_used: false };
        let backend = BackendStatus {
            source: "mail".to_owned(),
            kind: BackendKind::Postgres,
            database: Some("db:5432/mail".to_owned()),
            pool: Some(PoolUsage { maximum: 8, open: 2, in_use: 1, waiting: 0 }),
            pgvector: None,
            session: None,
            replicas: vec![replica],
        };
        let html = processes(&name, Some(&shared), &[backend]).into_string();
        for expected in [
            "class=\"bad\">unreachable",
            "3 failed with",
            "4 requests",
            "class=\"bad\">the keys differ",
            "1 of 8 in use",
            "not used",
            "lag unknown",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
    }
}
