//! A file that an import reads on a separate thread.
//!
//! Reading a pipe, a FIFO or a network file system can block forever and cannot be cancelled. `Input` therefore
//! receives chunks from a reader thread, and stops waiting when the import is stopped. The thread ends with the
//! process.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::intake::Progress;

/// Maximum size of one read in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Maximum number of chunks that are read ahead.
const MAX_CHUNKS_AHEAD: usize = 4;

/// Interval at which the stop flag is checked while the input blocks.
const STOP_POLL: Duration = Duration::from_millis(50);

/// A reader of a file that fails as soon as the import is stopped.
pub struct Input {
    /// Chunks from the reader thread. An empty chunk is the end of the file.
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    is_at_end: bool,
    stop: Arc<AtomicBool>,
    progress: Arc<dyn Progress>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("is_at_end", &self.is_at_end).finish_non_exhaustive()
    }
}

impl Input {
    /// Opens a file, and counts the bytes that are read. An error of opening it is returned by the first read, because
    /// opening a FIFO can block, too.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn open(path: &Path, stop: &Arc<AtomicBool>, progress: Arc<dyn Progress>) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(MAX_CHUNKS_AHEAD);
        let path = path.to_owned();
        thread::Builder::new().name("input".to_owned()).spawn(move || read_file(&path, &sender))?;
        Ok(Self { chunks, chunk: io::Cursor::default(), is_at_end: false, stop: Arc::clone(stop), progress })
    }

    /// Opens a file of text, without the byte order mark that some programs write before UTF-8.
    ///
    /// # Errors
    ///
    /// The thread cannot be started, or the start of the file cannot be read.
    pub fn open_text(
        path: &Path,
        stop: &Arc<AtomicBool>,
        progress: Arc<dyn Progress>,
    ) -> io::Result<BufReader<Self>> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut file = BufReader::with_capacity(CHUNK_BYTES, Self::open(path, stop, progress)?);
        if file.fill_buf()?.starts_with(MARK) {
            file.consume(MARK.len());
        }
        Ok(file)
    }

    /// Waits for the next chunk, which is empty at the end of the file.
    fn next_chunk(&self) -> io::Result<Vec<u8>> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("the import was stopped"));
            }
            match self.chunks.recv_timeout(STOP_POLL) {
                Ok(chunk) => return chunk,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the thread that reads it ended"));
                }
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.chunk.read(buffer)?;
        if count > 0 || buffer.is_empty() || self.is_at_end {
            return Ok(count);
        }
        let chunk = self.next_chunk()?;
        self.is_at_end = chunk.is_empty();
        self.progress.read(chunk.len() as u64);
        self.chunk = io::Cursor::new(chunk);
        self.chunk.read(buffer)
    }
}

/// Sends the content of a file in chunks, until the receiver is dropped.
fn read_file(path: &Path, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return drop(sender.send(Err(error))),
    };
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = match file.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read,
        };
        let read = read.map(|count| {
            chunk.truncate(count);
            chunk
        });
        let is_last = read.as_ref().map_or(true, Vec::is_empty);
        if sender.send(read).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::intake::NoProgress;
    use super::*;

    #[test]
    fn a_file_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, CHUNK_BYTES, 9 * CHUNK_BYTES + 7] {
            let written: Vec<u8> = (0_u8..251).cycle().take(length).collect();
            std::fs::write(&path, &written).unwrap();
            let mut read = Vec::new();
            let mut input = Input::open(&path, &Arc::default(), Arc::new(NoProgress)).unwrap();
            input.read_to_end(&mut read).unwrap();
            assert!(read == written, "{length}");
            assert_eq!(input.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn an_error_of_opening_the_file_is_returned_by_the_first_read() {
        let mut input =
            Input::open(Path::new("/no/such/file"), &Arc::default(), Arc::new(NoProgress)).unwrap();
        assert_eq!(input.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_stopped_input_is_not_read() {
        let stop = Arc::new(AtomicBool::new(true));
        let mut input = Input::open(Path::new("/dev/null"), &stop, Arc::new(NoProgress)).unwrap();
        assert!(input.read(&mut [0]).is_err());
    }
}
