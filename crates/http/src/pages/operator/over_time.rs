//! Calls over time, including those of earlier processes that the state directory has.

use std::sync::Arc;

use fetchwell_telemetry::{Activity, StoredActivity, Telemetry, TelemetryRecord};
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::chart;
use super::window::Window;

/// Calls over time, with the time of the oldest stored one.
#[derive(Debug)]
pub(super) struct CallsOverTime {
    activity: Activity,
    /// End of the oldest stored call. `None` if the calls are those that this process has in memory.
    since: Option<Timestamp>,
    window: Window,
}

impl CallsOverTime {
    /// Reads the stored calls, or counts the records of this process if there are none.
    pub(super) async fn read(
        telemetry: &Telemetry,
        records: &[Arc<TelemetryRecord>],
        now: Timestamp,
        window: Window,
    ) -> Self {
        let (count, interval) = window.intervals();
        let stored = stored(telemetry.clone(), now, interval, count).await;
        let (activity, since) = match stored {
            Some(StoredActivity { activity, since }) => (activity, Some(since)),
            None => (Activity::new(records, now, interval, count), None),
        };
        Self { activity, since, window }
    }

    /// Renders the calls as a chart and a table.
    pub(super) fn render(&self) -> Markup {
        html! {
            h2 { "Calls over time" }
            p class="soft" {
                @match self.since {
                    Some(since) => {
                        "Calls of all processes with this state directory, including earlier ones. The oldest record is of "
                        (since.strftime("%F %H:%M")) " UTC."
                    }
                    None => "The latest calls of this process.",
                }
            }
            (self.window.choices())
            (chart::calls_over_time(&self.activity))
        }
    }
}

/// Reads the stored calls on a thread that may block.
async fn stored(
    telemetry: Telemetry,
    now: Timestamp,
    interval: SignedDuration,
    count: usize,
) -> Option<StoredActivity> {
    let read = tokio::task::spawn_blocking(move || telemetry.stored_activity(now, interval, count));
    read.await.ok().flatten()
}
