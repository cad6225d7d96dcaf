//! Programs that read bytes for an import, with limits of time, memory and output.
//!
//! A file can make any program run for hours, print without end or take all memory. [`run_program`] kills such a program
//! with the processes that it started, and [`Permits`] limit how many run at once.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Maximum size of the error messages of a program that are kept, in bytes.
const MAX_SAID_BYTES: u64 = 4 * 1024;

/// Interval at which a running program is compared with its deadline and the flag that stops the import.
const POLL: Duration = Duration::from_millis(100);

/// Interval at which a program that has printed everything is looked at until it ends.
const END_POLL: Duration = Duration::from_millis(2);

/// Maximum time for the error messages of a program that has ended.
const SAID_TIME: Duration = Duration::from_secs(1);

/// The limits of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramLimits {
    pub(crate) time: Duration,
    pub(crate) output_bytes: u64,
    /// Maximum memory in bytes, on systems where another process can limit it. `None` for a program that limits itself.
    pub(crate) memory_bytes: Option<u64>,
}

/// The error of a program.
#[derive(Debug)]
pub(crate) enum ProgramError {
    /// No such program is on the `PATH`.
    Missing,
    /// The program cannot be started, or its output cannot be read.
    Io(io::Error),
    /// The program ran for longer than it may, and was killed.
    Timeout,
    /// The program printed more than it may, and was killed.
    TooMuchOutput,
    /// The user stopped the import.
    Stopped,
    /// The program ended with an error or a signal, and the start of its error messages.
    Failed(ExitStatus, String),
}

/// The permits for processes of a kind, in all threads.
pub(crate) struct Permits {
    max: u64,
    running: Mutex<u64>,
    ended: Condvar,
}

/// Permit for one process. Dropping it admits the next one.
pub(crate) struct Permit<'p>(&'p Permits);

impl Permits {
    /// Creates this number of permits.
    pub(crate) const fn new(max: u64) -> Self {
        Self { max, running: Mutex::new(0), ended: Condvar::new() }
    }

    /// Waits until fewer processes run than may.
    pub(crate) fn acquire(&self) -> Permit<'_> {
        let mut running = self.running.lock();
        self.ended.wait_while(&mut running, |running| *running >= self.max);
        *running += 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.running.lock() -= 1;
        self.0.ended.notify_one();
    }
}

/// Runs a program with this input, and returns its output. If it leads a process group, its children are killed with it.
/// Setting `stop` kills it.
///
/// # Errors
///
/// The program cannot be started, exceeds a limit, is stopped, or ends with an error.
pub(crate) fn run_program(
    command: &mut Command,
    input: Vec<u8>,
    limits: ProgramLimits,
    stop: Option<&AtomicBool>,
) -> Result<Vec<u8>, ProgramError> {
    let deadline = Instant::now() + limits.time;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ProgramError::Missing,
        _ => ProgramError::Io(error),
    })?;
    let mut program = RunningProgram { child, has_ended: false };
    if let Some(bytes) = limits.memory_bytes {
        program.limit_memory(bytes);
    }
    let Child { stdin, stdout, stderr, .. } = &mut program.child;
    let (Some(mut to_program), Some(output), Some(said)) = (stdin.take(), stdout.take(), stderr.take())
    else {
        return Err(ProgramError::Io(io::ErrorKind::BrokenPipe.into()));
    };
    // No thread is joined: a process that left the group can keep a pipe open.
    thread::spawn(move || drop(to_program.write_all(&input)));
    let output = read_in_thread(output, limits.output_bytes.saturating_add(1), false);
    let said = read_in_thread(said, MAX_SAID_BYTES, true);
    let output = program.wait_for_output(&output, deadline, stop)?;
    if output.len() as u64 > limits.output_bytes {
        return Err(ProgramError::TooMuchOutput);
    }
    let status = program.wait_for_end(deadline, stop)?;
    if status.success() {
        return Ok(output);
    }
    let said = said.recv_timeout(SAID_TIME).ok().and_then(Result::ok).unwrap_or_default();
    Err(ProgramError::Failed(status, String::from_utf8_lossy(&said).into_owned()))
}

/// Reads at most this many bytes of a pipe on another thread. With `drains`, the rest is read and dropped, so that the
/// program does not wait.
fn read_in_thread(
    mut pipe: impl Read + Send + 'static,
    max_bytes: u64,
    drains: bool,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.by_ref().take(max_bytes).read_to_end(&mut bytes);
        if drains {
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        drop(sender.send(read.map(|_count| bytes)));
    });
    receiver
}

/// A program that was started. Dropping it kills it.
struct RunningProgram {
    child: Child,
    has_ended: bool,
}

impl RunningProgram {
    fn wait_for_output(
        &self,
        output: &Receiver<io::Result<Vec<u8>>>,
        deadline: Instant,
        stop: Option<&AtomicBool>,
    ) -> Result<Vec<u8>, ProgramError> {
        loop {
            let left = time_left(deadline, stop)?;
            match output.recv_timeout(left.min(POLL)) {
                Ok(read) => return read.map_err(ProgramError::Io),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ProgramError::Io(io::ErrorKind::BrokenPipe.into()));
                }
            }
        }
    }

    /// Waits until the program ends, which may be later than the end of its output.
    fn wait_for_end(
        &mut self,
        deadline: Instant,
        stop: Option<&AtomicBool>,
    ) -> Result<ExitStatus, ProgramError> {
        loop {
            if let Some(status) = self.child.try_wait().map_err(ProgramError::Io)? {
                self.has_ended = true;
                return Ok(status);
            }
            thread::park_timeout(time_left(deadline, stop)?.min(END_POLL));
        }
    }

    /// Limits the memory of the program, on systems that can.
    fn limit_memory(&self, bytes: u64) {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Pid, Resource, Rlimit, prlimit};
            let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
            // Without the limit, the time is limited still.
            let _ = prlimit(Some(Pid::from_child(&self.child)), Resource::As, limit);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
    }

    /// Kills the process group that the program leads.
    fn kill_group(&self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, getpgid, kill_process_group};
            let own = Pid::from_child(&self.child);
            if getpgid(Some(own)).is_ok_and(|group| group == own) {
                let _ = kill_process_group(own, Signal::KILL);
            }
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if !self.has_ended {
            self.kill_group();
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns the time until a deadline.
fn time_left(deadline: Instant, stop: Option<&AtomicBool>) -> Result<Duration, ProgramError> {
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err(ProgramError::Stopped);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ProgramError::Timeout) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_waits_while_the_maximum_runs() {
        let processes = Permits::new(4);
        let mut permits: Vec<Permit<'_>> = (0..4).map(|_| processes.acquire()).collect();
        let (sender, admitted) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let permit = processes.acquire();
                sender.send(*processes.running.lock()).unwrap();
                drop(permit);
            });
            assert_eq!(admitted.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
            permits.pop();
            assert_eq!(admitted.recv(), Ok(4));
        });
        drop(permits);
        assert_eq!(*processes.running.lock(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn programs_are_bounded() {
        use std::os::unix::process::CommandExt;
        let run = |script: &str, input: &[u8], stop: bool| {
            let time = Duration::from_millis(if script.contains("sleep") { 300 } else { 60_000 });
            let limits = ProgramLimits { time, output_bytes: 100_000, memory_bytes: Some(512 * 1024 * 1024) };
            let mut command = Command::new("sh");
            command.args(["-c", script]).process_group(0);
            run_program(&mut command, input.to_vec(), limits, Some(&AtomicBool::new(stop)))
        };
        assert_eq!(run("cat", &[b'a'; 100_000], false).unwrap(), [b'a'; 100_000]);
        // A program that reads nothing is no error, nor one that says much.
        assert_eq!(run("echo x", &[b'a'; 1_000_000], false).unwrap(), b"x\n");
        assert_eq!(run("head -c 3000000 /dev/zero >&2; echo x", b"", false).unwrap(), b"x\n");
        assert!(matches!(run("cat /dev/zero", b"", false), Err(ProgramError::TooMuchOutput)));
        assert!(matches!(run("cat", b"", true), Err(ProgramError::Stopped)));
        // Also one that closed its output, one with a child, and one whose child left the group.
        for script in ["sleep 60", "exec >&-; sleep 60", "sleep 60 & wait", "setsid sleep 5 & sleep 60"] {
            assert!(matches!(run(script, b"", false), Err(ProgramError::Timeout)), "{script}");
        }
        match run("echo no such language >&2; exit 3", b"", false) {
            Err(ProgramError::Failed(status, said)) => {
                assert_eq!((status.code(), said.as_str()), (Some(3), "no such language\n"));
            }
            other => panic!("{other:?}"),
        }
        let limits = ProgramLimits { time: POLL, output_bytes: 1, memory_bytes: None };
        let missing = run_program(&mut Command::new("fetchwell-no-such-program"), Vec::new(), limits, None);
        assert!(matches!(missing, Err(ProgramError::Missing)));
    }
}
