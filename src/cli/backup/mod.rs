//! `fetchwell backup` and `fetchwell restore`: a store as one file, and back.
//!
//! * `chosen_store`: the store that is meant
//! * `create`, `restore`: the commands

mod chosen_store;
mod create;
mod restore;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use fetchwell_sqlite::Contents;

pub(super) use chosen_store::StoreArgs;
pub(super) use create::Backup;
pub(super) use restore::Restore;

use super::print::grouped;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::stop;

/// Runs work until its end, or until the user stops it.
pub(super) fn until_stopped<Done: Send + 'static, Problem: Into<Failure> + Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<Done, Problem> + Send + 'static,
) -> Result<Done, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&stop);
    let signal = Arc::new(OnceLock::new());
    let received = Arc::clone(&signal);
    runtime()?.block_on(async move {
        tokio::spawn(async move {
            let _ = received.set(stop::requested().await);
            requested.store(true, Ordering::Relaxed);
        });
        match tokio::task::spawn_blocking(move || work(&stop)).await {
            Ok(done) => done.map_err(Into::<Failure>::into).map_err(|failure| match signal.get() {
                Some(signal) => failure.ended_by(*signal),
                None => failure,
            }),
            Err(_panic) => Err(Failure::new("an internal error stopped the command; please report it")),
        }
    })
}

/// Describes contents for people.
fn described(contents: Contents) -> String {
    let Contents { connections, records, bytes } = contents;
    let plural =
        |count: u64, one: &str| format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" });
    format!(
        "{} of {}, {} bytes",
        plural(records, "record"),
        plural(connections, "connection"),
        grouped(bytes)
    )
}
