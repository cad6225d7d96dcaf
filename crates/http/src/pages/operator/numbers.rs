//! Calls of this process in numbers: how many, how fast, how large, and with which outcome.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use fetchwell_telemetry::{Aggregates, EndpointAggregates, Outcome, StorageState, TelemetryRecord};
use maud::{Markup, html};

use super::chart;

/// Renders the aggregates of all calls.
pub(super) fn summary(aggregates: &Aggregates, in_memory: usize) -> Markup {
    let Aggregates { context_protection: calls, telemetry } = aggregates;
    let kept = match telemetry.state {
        StorageState::Memory => "in memory, until the process ends",
        StorageState::Ok => "in the state directory, where fetchwell telemetry reads them",
        StorageState::Degraded => "in memory: the file in the state directory cannot be written",
    };
    html! {
        p class="soft" {
            "The numbers are of this process, apart from calls over time. With several replicas, each has its own; "
            code { "/metrics" } " has them for Prometheus."
        }
        dl class="facts" {
            dt { "Version" } dd { (env!("CARGO_PKG_VERSION")) }
            dt { "Running for" } dd { (duration(calls.uptime_seconds)) }
            dt { "Calls" } dd { (calls.total_requests) ", of which the latest " (in_memory) " are shown here" }
            dt { "Latency" }
            dd { "p50 " (calls.p50_latency_ms) " ms, p95 " (calls.p95_latency_ms) " ms, p99 " (calls.p99_latency_ms) " ms" }
            dt { "Size of an answer" } dd { (calls.avg_response_size_bytes.round()) " bytes on average" }
            dt { "Shaped answers" }
            dd {
                (percent(calls.pagination_adoption)) " of lists in pages, " (percent(calls.summarization_adoption))
                " of calls with previews, " (percent(calls.chunking_adoption)) " with a part of a text"
            }
            dt { "Records of calls" } dd { (kept) @if telemetry.dropped > 0 { "; " (telemetry.dropped) " were lost" } }
        }
    }
}

/// Renders the calls by tool and route.
pub(super) fn endpoints(records: &[Arc<TelemetryRecord>]) -> Markup {
    let mut rows = EndpointAggregates::from_records(records.iter().map(AsRef::as_ref));
    rows.sort_by_key(|row| Reverse(row.calls));
    let max_calls = rows.iter().map(|row| row.calls).max().unwrap_or(0);
    html! {
        h2 { "By tool and route" }
        @if rows.is_empty() { p { "No call has ended yet." } } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Calls by tool and route" {
                table {
                    thead { tr {
                        th scope="col" { "Tool or route" } th scope="col" { "Share" }
                        @for heading in ["Calls", "Failed", "p50 ms", "p95 ms", "p99 ms", "Bytes", "Tokens"] {
                            th scope="col" class="number" { (heading) }
                        }
                    } }
                    tbody { @for row in &rows { tr {
                        th scope="row" { code { (row.endpoint) } }
                        td { (chart::share(row.calls, max_calls, "calls")) }
                        td class="number" { (row.calls) }
                        td class="number" { (row.errors) }
                        td class="number" { (row.p50_ms) }
                        td class="number" { (row.p95_ms) }
                        td class="number" { (row.p99_ms) }
                        td class="number" { (row.avg_response_bytes.round()) }
                        td class="number" { (row.avg_tokens.round()) }
                    } } }
                }
            }
        }
    }
}

/// Renders the outcomes of calls other than success.
pub(super) fn outcomes(records: &[Arc<TelemetryRecord>]) -> Markup {
    let mut counts: BTreeMap<Outcome, u64> = BTreeMap::new();
    for record in records.iter().filter(|record| record.outcome != Outcome::OK) {
        *counts.entry(record.outcome).or_default() += 1;
    }
    html! {
        h2 { "Failures" }
        @if counts.is_empty() { p { "No call failed." } } @else {
            dl class="facts" {
                @for (outcome, count) in &counts { dt { code { (outcome) } } dd { (count) } }
            }
        }
    }
}

/// Renders the latest calls without anything of their contents.
pub(super) fn recent(records: &[Arc<TelemetryRecord>], max_calls: usize) -> Markup {
    html! {
        h2 { "Recent calls" }
        @if !records.is_empty() {
            div class="scroll" tabindex="0" role="region" aria-label="Recent calls" {
                table {
                    thead { tr {
                        th scope="col" { "Ended (UTC)" } th scope="col" { "Tool or route" } th scope="col" { "Outcome" }
                        @for heading in ["ms", "Bytes", "Tokens", "Items"] { th scope="col" class="number" { (heading) } }
                        th scope="col" { "Caller" }
                    } }
                    tbody { @for record in records.iter().take(max_calls) { tr {
                        td { (record.timestamp.strftime("%F %T").to_string()) }
                        td { code { (record.endpoint) } }
                        td { (record.outcome) }
                        td class="number" { (format!("{:.1}", millis(record.latency_us))) }
                        td class="number" { (record.response_bytes) }
                        td class="number" { (record.estimated_tokens) }
                        td class="number" { (record.item_count) }
                        td { @if let Some(caller) = record.caller { code { (caller) } } }
                    } } }
                }
            }
        }
    }
}

fn millis(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats seconds for people, by their two largest units.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (seconds, expect) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3_700, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(duration(seconds), expect);
        }
    }
}
