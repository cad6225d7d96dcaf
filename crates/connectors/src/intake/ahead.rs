//! Parses the pieces of one file on several threads.
//!
//! The caller's thread splits the file into pieces and writes what was parsed, in the order of the file. Batches of pieces
//! are parsed on other threads. The pieces that are read ahead are bounded in number and bytes. The first pieces are parsed
//! and written one by one, so that small files need no thread, and the start of a slow file is written at once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, Scope};

use parking_lot::Mutex;

use super::super::ImportError;
use super::super::depth::PARSER_STACK_BYTES;

/// Maximum number of threads that parse.
const MAX_PARSERS: usize = 8;

/// Number of pieces of a batch, and of the pieces before the first batch.
const BATCH_PIECES: usize = 256;

/// Bytes of a batch, after which it is parsed.
const BATCH_BYTES: usize = 256 * 1024;

/// Number of batches between the reader and the writer, for each parser.
const BATCHES_PER_PARSER: usize = 3;

/// Maximum bytes of these batches. A larger piece is parsed alone.
const MAX_BYTES_AHEAD: usize = 8 * 1024 * 1024;

/// A piece of a file.
#[derive(Debug)]
pub(crate) struct Piece<Place, Content> {
    /// Position in the file, for the report.
    pub(crate) place: Place,
    /// Content to parse, or the reason why it cannot be read.
    pub(crate) content: Result<Content, String>,
    /// Size in bytes.
    pub(crate) bytes: usize,
}

/// A receiver of pieces in the order of the file.
pub(crate) type PieceSink<'a, Place, Content> =
    dyn FnMut(Piece<Place, Content>) -> Result<(), ImportError> + 'a;

/// Calls `read` with a receiver of pieces, parses these on several threads, and calls `write` with each result in the order
/// of the pieces. Pieces before an error of `read` and before a stop are written. A piece that causes a panic of the parser is
/// rejected.
pub(crate) fn parse_ahead<Place: Send, Content: Send, Value: Send>(
    stop: &AtomicBool,
    parse: &(dyn Fn(Content) -> Result<Value, String> + Sync),
    read: impl FnOnce(&mut PieceSink<'_, Place, Content>) -> Result<(), ImportError>,
    write: &mut dyn FnMut(Place, Result<Value, String>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let mut ahead = Ahead::new(scope, parse, cores.min(MAX_PARSERS));
        let mut is_written = true;
        let read = read(&mut |piece| {
            let written = ahead
                .push(piece)
                .and_then(|all| all.into_iter().try_for_each(|(place, parsed)| write(place, parsed)));
            is_written = written.is_ok();
            written?;
            if stop.load(Ordering::Relaxed) { Err(ImportError::Stopped) } else { Ok(()) }
        });
        if is_written {
            ahead.finish(write)?;
        }
        read
    })
}

/// Results of a batch.
type Parsed<Place, Value> = Vec<(Place, Result<Value, String>)>;

/// A batch to parse, and the channel for its results.
struct Job<Place, Content, Value> {
    pieces: Vec<Piece<Place, Content>>,
    results: SyncSender<Parsed<Place, Value>>,
}

/// A batch that the writer waits for.
struct Pending<Place, Value> {
    results: Receiver<Parsed<Place, Value>>,
    bytes: usize,
}

type Queue<Place, Content, Value> = Arc<Mutex<Receiver<Job<Place, Content, Value>>>>;

/// The batches between the reader and the writer.
struct Ahead<'scope, 'env, Place, Content, Value> {
    scope: &'scope Scope<'scope, 'env>,
    parse: &'env (dyn Fn(Content) -> Result<Value, String> + Sync),
    max_parsers: usize,
    parsers: usize,
    /// Number of pieces that were parsed one by one.
    first: usize,
    jobs: Sender<Job<Place, Content, Value>>,
    queue: Queue<Place, Content, Value>,
    batch: Vec<Piece<Place, Content>>,
    batch_bytes: usize,
    pending: VecDeque<Pending<Place, Value>>,
    pending_bytes: usize,
}

impl<'scope, 'env, Place, Content, Value> Ahead<'scope, 'env, Place, Content, Value>
where
    Place: Send + 'scope,
    Content: Send + 'scope,
    Value: Send + 'scope,
{
    fn new(
        scope: &'scope Scope<'scope, 'env>,
        parse: &'env (dyn Fn(Content) -> Result<Value, String> + Sync),
        cores: usize,
    ) -> Self {
        let (jobs, queue) = channel();
        Self {
            scope,
            parse,
            // The only core parses on the thread of the writer.
            max_parsers: if cores < 2 { 0 } else { cores },
            parsers: 0,
            first: 0,
            jobs,
            queue: Arc::new(Mutex::new(queue)),
            batch: Vec::new(),
            batch_bytes: 0,
            pending: VecDeque::new(),
            pending_bytes: 0,
        }
    }

    /// Adds a piece. Returns the results that are to be written now.
    fn push(&mut self, piece: Piece<Place, Content>) -> Result<Parsed<Place, Value>, ImportError> {
        if self.first < BATCH_PIECES {
            self.first += 1;
            return Ok(vec![parse_piece(piece, self.parse)]);
        }
        self.batch_bytes += piece.bytes;
        self.batch.push(piece);
        if self.batch.len() < BATCH_PIECES && self.batch_bytes < BATCH_BYTES {
            return Ok(Vec::new());
        }
        self.start_parser();
        let pieces = std::mem::take(&mut self.batch);
        let bytes = std::mem::take(&mut self.batch_bytes);
        if self.parsers == 0 {
            return Ok(parse_batch(pieces, self.parse));
        }
        let (results, receiver) = sync_channel(1);
        if let Err(unsent) = self.jobs.send(Job { pieces, results }) {
            return Ok(parse_batch(unsent.0.pieces, self.parse));
        }
        self.pending.push_back(Pending { results: receiver, bytes });
        self.pending_bytes += bytes;
        let mut parsed = Vec::new();
        while self.pending.len() > self.parsers * BATCHES_PER_PARSER || self.pending_bytes > MAX_BYTES_AHEAD {
            parsed.extend(self.next_results().transpose()?.unwrap_or_default());
        }
        Ok(parsed)
    }

    /// Writes the results of all pieces.
    fn finish(
        mut self,
        write: &mut dyn FnMut(Place, Result<Value, String>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        while let Some(parsed) = self.next_results() {
            parsed?.into_iter().try_for_each(|(place, parsed)| write(place, parsed))?;
        }
        let rest = parse_batch(std::mem::take(&mut self.batch), self.parse);
        rest.into_iter().try_for_each(|(place, parsed)| write(place, parsed))
    }

    /// Waits for the next batch.
    fn next_results(&mut self) -> Option<Result<Parsed<Place, Value>, ImportError>> {
        let Pending { results, bytes } = self.pending.pop_front()?;
        self.pending_bytes -= bytes;
        Some(results.recv().map_err(|_ended| ImportError::Panicked))
    }

    /// Starts another parser, unless there are as many as cores. Small files need none.
    fn start_parser(&mut self) {
        if self.parsers == self.max_parsers {
            return;
        }
        let (queue, parse) = (Arc::clone(&self.queue), self.parse);
        let thread = thread::Builder::new().name("parse".to_owned()).stack_size(PARSER_STACK_BYTES);
        match thread.spawn_scoped(self.scope, move || parse_jobs(&queue, parse)) {
            Ok(_parser) => self.parsers += 1,
            // The parsers that run, or the thread of the writer, parse everything.
            Err(_error) => self.max_parsers = self.parsers,
        }
    }
}

/// Parses batches until the reader has ended.
fn parse_jobs<Place, Content, Value>(
    queue: &Mutex<Receiver<Job<Place, Content, Value>>>,
    parse: &(dyn Fn(Content) -> Result<Value, String> + Sync),
) {
    loop {
        let job = queue.lock().recv();
        let Ok(Job { pieces, results }) = job else { return };
        // The writer has ended if the results are not received.
        let _ = results.send(parse_batch(pieces, parse));
    }
}

fn parse_batch<Place, Content, Value>(
    pieces: Vec<Piece<Place, Content>>,
    parse: &(dyn Fn(Content) -> Result<Value, String> + Sync),
) -> Parsed<Place, Value> {
    pieces.into_iter().map(|piece| parse_piece(piece, parse)).collect()
}

fn parse_piece<Place, Content, Value>(
    Piece { place, content, bytes: _ }: Piece<Place, Content>,
    parse: &(dyn Fn(Content) -> Result<Value, String> + Sync),
) -> (Place, Result<Value, String>) {
    let parsed = content.and_then(|content| {
        catch_unwind(AssertUnwindSafe(|| parse(content)))
            .unwrap_or_else(|_panic| Err("an internal error stopped its parser; please report it".to_owned()))
    });
    (place, parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses numbers of which some are rejected, and asserts that all results come in order.
    fn check(pieces: u32, bytes: usize) {
        let parse = |number: u32| match number % 7 {
            0 => Err("seven".to_owned()),
            1 if number > 1_000 => panic!("a parser fails"),
            _ => Ok(number * 2),
        };
        let mut written = Vec::new();
        let read = |send: &mut PieceSink<'_, u32, u32>| {
            (0..pieces).try_for_each(|number| {
                let content = if number % 5 == 0 { Err("five".to_owned()) } else { Ok(number) };
                send(Piece { place: number, content, bytes })
            })?;
            Err(ImportError::Stopped)
        };
        let ended = parse_ahead(&AtomicBool::new(false), &parse, read, &mut |place, parsed| {
            written.push((place, parsed));
            Ok(())
        });
        assert!(matches!(ended, Err(ImportError::Stopped)));
        assert_eq!(written.len(), pieces as usize);
        for (at, (place, parsed)) in (0..pieces).zip(written) {
            assert_eq!(place, at);
            match parsed {
                Ok(number) => assert_eq!(number, at * 2),
                Err(reason) if at % 5 == 0 => assert_eq!(reason, "five"),
                Err(reason) if at % 7 == 0 => assert_eq!(reason, "seven"),
                Err(reason) => assert!(reason.starts_with("an internal error") && at % 7 == 1 && at > 1_000),
            }
        }
    }

    #[test]
    fn results_come_in_the_order_of_the_file() {
        for pieces in [0, 1, 255, 256, 257, 20_000] {
            check(pieces, 10);
        }
        check(300, MAX_BYTES_AHEAD);
    }

    #[test]
    fn what_was_read_before_a_stop_is_written() {
        let stop = AtomicBool::new(false);
        let (mut sent, mut written) = (0, 0);
        let read = |send: &mut PieceSink<'_, u32, u32>| {
            (0..100_000).try_for_each(|number| {
                stop.store(number == 5_000, Ordering::Relaxed);
                sent += 1;
                send(Piece { place: number, content: Ok(number), bytes: 1 })
            })
        };
        let ended = parse_ahead(&stop, &Ok, read, &mut |_place, _parsed: Result<u32, String>| {
            written += 1;
            Ok(())
        });
        assert!(matches!(ended, Err(ImportError::Stopped)));
        assert_eq!((sent, written), (5_001, 5_001));
    }

    #[test]
    fn nothing_is_written_after_an_error_of_the_writer() {
        let mut written = 0;
        let read = |send: &mut PieceSink<'_, u32, u32>| {
            (0..100_000).try_for_each(|number| send(Piece { place: number, content: Ok(number), bytes: 1 }))
        };
        let ended =
            parse_ahead(&AtomicBool::new(false), &Ok, read, &mut |_place, _parsed: Result<u32, String>| {
                written += 1;
                if written < 1_000 { Ok(()) } else { Err(ImportError::NoGit) }
            });
        assert!(matches!(ended, Err(ImportError::NoGit)));
        assert_eq!(written, 1_000);
    }
}
