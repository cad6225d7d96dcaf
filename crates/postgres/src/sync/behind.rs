//! Writes the batches of an import on a thread of its own, so that the texts and words of the next batch are computed while the
//! server writes. At most one batch waits.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use fetchwell_core::handle::StreamName;
use fetchwell_source::contract::{StoreError, Tally};
use fetchwell_source::sync::RecordBatch;
use parking_lot::Mutex;

use super::batch_writer::BatchWriter;
use crate::preparation::{Prepared, prepare};

/// Batch with what was computed of its records.
type PreparedBatch = (RecordBatch, Vec<Prepared>);

/// Writer of batches that are written behind the import.
#[derive(Debug)]
pub(super) struct Behind {
    connection: i64,
    known: Arc<Mutex<Known>>,
    running: Option<(SyncSender<PreparedBatch>, JoinHandle<Option<Ended>>)>,
}

/// The facts that the last batch that was written tells about the next ones.
#[derive(Debug, Default)]
struct Known {
    /// Row ids of streams.
    streams: HashMap<StreamName, i64>,
    /// True if most records were unchanged: then their words are not needed.
    are_unchanged: bool,
}

/// A writer after its last batch.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) writer: Box<BatchWriter>,
    /// Records of all batches that it has written, by effect.
    pub(super) tally: Tally,
    pub(super) error: Option<StoreError>,
}

impl Behind {
    /// Starts the thread of a writer. Returns the writer if there can be no thread.
    pub(super) fn start(writer: Box<BatchWriter>) -> Result<Self, Box<BatchWriter>> {
        let connection = writer.state.connection;
        let known = Arc::new(Mutex::new(Known { streams: rows(&writer), are_unchanged: false }));
        let (sender, receiver) = sync_channel(0);
        let noted = Arc::clone(&known);
        // The thread takes the writer only after it was started.
        let (give, taken) = sync_channel::<Box<BatchWriter>>(1);
        let run = move || Some(write_all(taken.recv().ok()?, &receiver, &noted));
        let Ok(thread) = Builder::new().name("write".to_owned()).spawn(run) else { return Err(writer) };
        match give.send(writer) {
            Ok(()) => Ok(Self { connection, known, running: Some((sender, thread)) }),
            Err(SendError(writer)) => Err(writer),
        }
    }

    /// Computes texts and words of a batch, and gives it to the thread after the one before is written. Returns false if an earlier
    /// one failed.
    pub(super) fn write(&self, batch: RecordBatch) -> bool {
        let streams = {
            let known = self.known.lock();
            if known.are_unchanged { HashMap::new() } else { known.streams.clone() }
        };
        let prepared = prepare(&batch.records, self.connection, &streams);
        self.running.as_ref().is_some_and(|(sender, _)| sender.send((batch, prepared)).is_ok())
    }

    /// Waits until all batches are written.
    pub(super) fn end(mut self) -> Option<Ended> {
        self.join()
    }

    fn join(&mut self) -> Option<Ended> {
        let (sender, thread) = self.running.take()?;
        drop(sender);
        thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.join();
    }
}

/// Writes batches until the last one or an error.
fn write_all(
    mut writer: Box<BatchWriter>,
    receiver: &Receiver<PreparedBatch>,
    known: &Mutex<Known>,
) -> Ended {
    let mut tally = Tally::default();
    for (batch, prepared) in receiver {
        let records = batch.records.len() as u64;
        match writer.write(batch, prepared) {
            Ok(written) => {
                tally += written.tally;
                let are_unchanged = written.tally.unchanged * 2 > records;
                *known.lock() = Known { streams: rows(&writer), are_unchanged };
            }
            Err(error) => return Ended { writer, tally, error: Some(error) },
        }
    }
    Ended { writer, tally, error: None }
}

fn rows(writer: &BatchWriter) -> HashMap<StreamName, i64> {
    writer.state.streams.iter().map(|(name, stream)| (name.clone(), stream.row)).collect()
}
