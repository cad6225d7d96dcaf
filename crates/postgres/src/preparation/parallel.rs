//! Computes values of many records by several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism, scope};

/// Minimum number of records of a thread.
const MIN_RECORDS_PER_THREAD: usize = 250;

/// Maximum number of threads. Words take most of the processor time of an import.
const MAX_THREADS: usize = 4;

/// Returns the value of each record in their order.
pub(crate) fn compute<Item: Sync, Value: Send>(
    items: &[Item],
    value: impl Fn(&Item) -> Value + Sync,
) -> Vec<Value> {
    let threads = available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let size = items.len().div_ceil(threads).max(MIN_RECORDS_PER_THREAD);
    let (own, others) = items.split_at(size.min(items.len()));
    scope(|scope| {
        let value = &value;
        let others = others.chunks(size).map(|chunk| {
            let compute = move || chunk.iter().map(value).collect::<Vec<_>>();
            (chunk, Builder::new().name("words".to_owned()).spawn_scoped(scope, compute))
        });
        let others: Vec<_> = others.collect();
        let mut found: Vec<Value> = own.iter().map(value).collect();
        for (chunk, thread) in others {
            match thread {
                Ok(thread) => found.extend(thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))),
                // The thread could not be started.
                Err(_) => found.extend(chunk.iter().map(value)),
            }
        }
        found
    })
}
