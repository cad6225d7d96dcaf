//! Servers that are started as a child process and spoken to over its standard input and output.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Duration, sleep};

/// Maximum length of a line of a child's standard error in the log, in bytes.
const MAX_LOGGED_BYTES: u64 = 2_000;

/// Time in which a program whose output has ended ends itself, and the number of times that it is looked at.
const END_PAUSE: Duration = Duration::from_millis(20);
const END_LOOKS: usize = 25;

/// Command of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program and its arguments.
    pub line: Vec<String>,
    /// All variables of its environment.
    pub environment: Vec<(String, OsString)>,
    /// Folder that it is started in; that of this program if absent.
    pub folder: Option<PathBuf>,
}

/// Child process. It is killed with all of its children when this value is dropped.
#[derive(Debug)]
pub(super) struct ServerProcess {
    program: String,
    child: Mutex<Child>,
}

/// The three streams of a child.
pub(super) struct Pipes {
    pub(super) output: ChildStdout,
    pub(super) input: ChildStdin,
    pub(super) errors: ChildStderr,
}

/// Starts a server.
///
/// # Errors
///
/// The program does not exist or cannot be started.
pub(super) fn start(command: &ServerCommand) -> Result<(ServerProcess, Pipes), String> {
    let (program, arguments) = command.line.split_first().ok_or("the command is empty")?;
    let mut process = Command::new(program);
    process.args(arguments).env_clear();
    process.envs(command.environment.iter().map(|(name, value)| (name, value)));
    // A command for a configuration that is not written yet has no folder.
    if let Some(folder) = command.folder.as_ref().filter(|folder| folder.is_dir()) {
        process.current_dir(folder);
    }
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Launchers such as npx start the server as a child of their own, which must end with them.
    #[cfg(unix)]
    process.process_group(0);
    let child = process.spawn().map_err(|error| format!("`{program}` cannot be started ({error})"))?;
    RUNNING.lock().extend(child.id());
    let mut server = ServerProcess { program: program.clone(), child: Mutex::new(child) };
    let child = server.child.get_mut();
    let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
    let (Some(output), Some(input), Some(errors)) = pipes else {
        return Err(format!("`{program}` has no pipes"));
    };
    Ok((server, Pipes { output, input, errors }))
}

impl ServerProcess {
    /// Describes how a program ended whose output has ended, and how to see why.
    pub(super) async fn describe_end(&self) -> String {
        let program = &self.program;
        let mut status = self.ended();
        for _ in 0..END_LOOKS {
            if status.is_some() {
                break;
            }
            sleep(END_PAUSE).await;
            status = self.ended();
        }
        let end = match status {
            None => format!("the program `{program}` closed its output, or sent what is not of the protocol"),
            Some(status) => match status.code() {
                Some(code) => format!("the program `{program}` ended with exit code {code}"),
                // Such as `signal: 9 (SIGKILL)`.
                None => format!("the program `{program}` ended by {status}"),
            },
        };
        format!("{end}; `--log debug` shows what it wrote to standard error")
    }

    /// Returns the status of a program that has ended. Its children are killed then.
    fn ended(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock();
        let id = child.id();
        let status = child.try_wait().ok().flatten();
        if status.is_some() {
            id.into_iter().for_each(end_group);
        }
        status
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // There is no id after the end of the program was seen.
        self.child.get_mut().id().into_iter().for_each(end_group);
    }
}

fn end_group(id: u32) {
    RUNNING.lock().remove(&id);
    kill_group(id);
}

/// Ids of the children that are running.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Kills all servers that this process started, with their children. For the end of the process, at which values are not
/// dropped.
pub fn stop_servers() {
    for id in std::mem::take(&mut *RUNNING.lock()) {
        kill_group(id);
    }
}

#[cfg(unix)]
fn kill_group(id: u32) {
    let group = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // It may have ended by itself.
        let _ended = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_id: u32) {}

/// Logs the lines of a child's standard error until it ends. Reads them in any case: a full pipe would stop the child.
pub(super) async fn log_errors(source: String, errors: ChildStderr) {
    let mut lines = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut lines).take(MAX_LOGGED_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        tracing::debug!(source, stderr = %text.trim_end().escape_debug(), "the server wrote");
    }
}
