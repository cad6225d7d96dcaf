//! A changed configuration file, put in force while calls are answered.
//!
//! A call ends with what it began with. A file that is not valid changes nothing: all of it is live, or none of it.

use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;

use super::failure::Failure;
use super::open::{OpenedSource, joined, reopen_sources};
use super::settings::Configured;
use crate::config::{Environment, FileSettings, Noticed, Reloads, Watching, watch};
use crate::http::RateLimiter;
use crate::tools::Live;

/// What is served, with all that a change of it takes.
pub(super) struct Reload {
    pub(super) configured: Configured,
    pub(super) environment: Environment,
    /// The sources of `configured`, as they are open.
    pub(super) opened: Vec<OpenedSource>,
    pub(super) live: Live,
    pub(super) rate_limiter: RateLimiter,
    pub(super) reloads: Reloads,
}

impl Reload {
    /// Follows the file until what this gives is dropped. A file that cannot be followed is served as it was.
    pub(super) fn follow(mut self, runtime: Handle) -> Option<Watching> {
        let file = self.configured.file.as_ref()?;
        let (path, text) = (file.path().to_owned(), file.text.clone());
        let watching = watch(&path, text, move |noticed| {
            // A source may begin tasks when it is opened.
            let _inside = runtime.enter();
            self.notice(noticed);
        });
        match watching {
            Ok(watching) => Some(watching),
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        }
    }

    fn notice(&mut self, noticed: Noticed) {
        let refused = match noticed {
            Noticed::Text { text, at } => match self.apply(&text) {
                Ok(()) => return self.is_live(at),
                Err(failure) => failure.message,
            },
            Noticed::Removed => "the configuration file is gone".to_owned(),
            Noticed::Unreadable(error) => error.to_string(),
        };
        self.reloads.count_refused();
        tracing::warn!("{refused}; what was configured before stays in force");
    }

    fn is_live(&self, at: Instant) {
        let took = at.elapsed();
        self.reloads.count_applied(took);
        let latency_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        tracing::info!(latency_us, "configuration reloaded");
    }

    fn apply(&mut self, text: &str) -> Result<(), Failure> {
        let settings = self.configured.again(text, &self.environment)?;
        let before = &self.configured.settings;
        let now = self.live.now();
        // With it, what is known of sources stays: circuits, caches, where lists go on.
        let source = if settings.sources == before.sources && settings.call_deadline == before.call_deadline {
            Arc::clone(now.asked_source())
        } else {
            let opened = reopen_sources(&settings, &self.environment, &self.opened)?;
            let source = joined(opened.clone(), settings.call_deadline)?;
            self.opened = opened;
            source
        };
        let protection = match settings.protection == **now.protection() {
            true => Arc::clone(now.protection()),
            false => Arc::new(settings.protection.clone()),
        };
        self.rate_limiter.replace(settings.rate_limit);
        self.live.replace(now.succeeded_by(source, settings.call_deadline, protection));
        note_what_waits(before, &settings);
        // What waits for the next start is told once, and not with every change after it.
        self.configured.settings = settings;
        Ok(())
    }
}

/// Says what a running server does not change.
fn note_what_waits(before: &FileSettings, after: &FileSettings) {
    for (key, is_changed) in
        [("listen", before.listen != after.listen), ("state_dir", before.state_dir != after.state_dir)]
    {
        if is_changed {
            tracing::warn!(key, "takes effect at the next start");
        }
    }
}
