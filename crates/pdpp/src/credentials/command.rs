//! A credential that a command prints, for tokens that are valid for minutes.
//!
//! The command runs in a task of its own, once for all calls that wait for it: cancelling a call does not stop it for
//! the others, and its output is kept for the next call. It is ended after ten seconds, with all processes that it
//! started.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::saturate::saturated;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::CredentialFault;
use super::token::Credential;

/// Maximum run time of a command.
const MAX_RUN: Duration = Duration::from_secs(10);

/// Maximum output of a command in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// Time before its expiry at which a token is renewed, so that no token expires in flight.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(30);

/// Shell command with its working folder. The command line may contain a secret, so it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandLine {
    line: String,
    folder: PathBuf,
}

impl CommandLine {
    /// Creates the command `sh -c line`, run in `folder`.
    #[must_use]
    pub fn new(line: String, folder: PathBuf) -> Self {
        Self { line, folder }
    }

    #[cfg(unix)]
    fn shell(&self) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&self.line);
        // A process group of its own can be ended with all processes in it.
        shell.process_group(0);
        shell
    }

    #[cfg(not(unix))]
    fn shell(&self) -> Command {
        let mut shell = Command::new("cmd");
        shell.arg("/C").arg(&self.line);
        shell
    }
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandLine").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Command and the last token that it printed.
#[derive(Debug)]
pub(super) struct TokenCommand {
    line: CommandLine,
    state: Arc<Mutex<State>>,
}

type Outcome = Result<Credential, CredentialFault>;

#[derive(Debug, Default)]
struct State {
    known: Option<CachedToken>,
    running: Option<Shared<BoxFuture<'static, Outcome>>>,
}

#[derive(Debug)]
struct CachedToken {
    credential: Credential,
    renew_at: Option<Timestamp>,
}

impl TokenCommand {
    pub(super) fn new(line: CommandLine) -> Self {
        Self { line, state: Arc::default() }
    }

    /// Returns the last token, unless it expires soon or was refused; then runs the command for a new one.
    pub(super) async fn current(&self, now: Timestamp, refused: Option<&SecretString>) -> Outcome {
        let running = {
            let mut state = self.state.lock();
            if let Some(known) = &state.known
                && known.is_good(now, refused)
            {
                return Ok(known.credential.clone());
            }
            match &state.running {
                Some(running) => running.clone(),
                None => state.running.insert(self.start()).clone(),
            }
        };
        running.await
    }

    /// Starts the command. The state is locked meanwhile, so the run cannot end before it is registered.
    fn start(&self) -> Shared<BoxFuture<'static, Outcome>> {
        let (line, state) = (self.line.clone(), Arc::clone(&self.state));
        let task = tokio::spawn(async move {
            let started = Timestamp::now();
            let outcome = run(&line, started, MAX_RUN).await;
            let mut state = state.lock();
            state.running = None;
            state.known =
                outcome.as_ref().ok().map(|credential| CachedToken::new(credential.clone(), started));
            outcome
        });
        let state = Arc::clone(&self.state);
        let joined = task.map(move |ended| {
            ended.unwrap_or_else(|_stopped| {
                state.lock().running = None;
                Err(CredentialFault::failed("it was stopped, because the program is ending"))
            })
        });
        joined.boxed().shared()
    }
}

impl CachedToken {
    /// Renews a short-lived token in the last tenth of its lifetime.
    fn new(credential: Credential, started: Timestamp) -> Self {
        let renew_at = credential.expires_at.map(|end| {
            let margin = RENEW_BEFORE.min(end.duration_since(started) / 10);
            end.checked_sub(margin).unwrap_or(end)
        });
        Self { credential, renew_at }
    }

    fn is_good(&self, now: Timestamp, refused: Option<&SecretString>) -> bool {
        let token = self.credential.token.expose_secret();
        self.renew_at.is_none_or(|renew_at| now < renew_at)
            && refused.is_none_or(|refused| refused.expose_secret() != token)
    }
}

async fn run(line: &CommandLine, started: Timestamp, limit: Duration) -> Outcome {
    let output = timeout(limit, output(line)).await;
    let output = output
        .unwrap_or_else(|_elapsed| Err(CredentialFault::failed(format!("it did not end within {limit:?}"))));
    Credential::of_text(output?.expose_secret(), started)
}

/// Runs the command and returns its standard output. Standard error may quote a secret and is discarded.
async fn output(line: &CommandLine) -> Result<SecretString, CredentialFault> {
    let failed = |error: std::io::Error| CredentialFault::failed(error.to_string());
    let mut shell = line.shell();
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    if !line.folder.as_os_str().is_empty() {
        shell.current_dir(&line.folder);
    }
    let mut running = Group::new(shell.spawn().map_err(failed)?);
    let mut printed = Vec::new();
    if let Some(stdout) = running.child.stdout.take() {
        let max_bytes = saturated::<u64>(MAX_OUTPUT) + 1;
        stdout.take(max_bytes).read_to_end(&mut printed).await.map_err(failed)?;
    }
    if printed.len() > MAX_OUTPUT {
        return Err(CredentialFault::malformed(format!("it is more than {MAX_OUTPUT} bytes")));
    }
    let status = running.child.wait().await.map_err(failed)?;
    running.ended = true;
    if !status.success() {
        return Err(CredentialFault::failed(format!("it ended with {status}")));
    }
    let text = String::from_utf8(printed).map_err(|_bytes| CredentialFault::malformed("it is not text"))?;
    Ok(SecretString::from(text))
}

/// Process group of a shell, which is ended when it is dropped before the shell has exited.
struct Group {
    child: Child,
    ended: bool,
}

impl Group {
    fn new(child: Child) -> Self {
        Self { child, ended: false }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let id = self.child.id().filter(|_| !self.ended).and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // The process may have exited just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn command(line: &str, folder: &Path) -> TokenCommand {
        TokenCommand::new(CommandLine::new(line.to_owned(), folder.to_owned()))
    }

    fn runs(folder: &Path) -> usize {
        fs::read_to_string(folder.join("runs")).map_or(0, |runs| runs.lines().count())
    }

    /// Prints a different token on each run.
    const NEXT: &str = "echo run >> runs; echo tok_$(wc -l < runs | tr -d ' ')";

    #[tokio::test]
    async fn ten_calls_run_it_once_and_a_refused_token_runs_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let command = command(&format!("sleep 0.05; {NEXT}"), folder.path());
        let now = Timestamp::now();
        let ten = futures_util::future::join_all((0..10).map(|_| command.current(now, None))).await;
        for outcome in ten {
            assert_eq!(outcome.unwrap().token.expose_secret(), "tok_1");
        }
        assert_eq!(runs(folder.path()), 1);
        let refused = SecretString::from("tok_1");
        let ten = (0..10).map(|_| command.current(now, Some(&refused)));
        for outcome in futures_util::future::join_all(ten).await {
            assert_eq!(outcome.unwrap().token.expose_secret(), "tok_2");
        }
        // The refused token has been replaced by now.
        assert_eq!(command.current(now, Some(&refused)).await.unwrap().token.expose_secret(), "tok_2");
        assert_eq!(runs(folder.path()), 2);
    }

    #[tokio::test]
    async fn a_token_is_renewed_shortly_before_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let line = r#"echo run >> runs; echo '{"access_token":"tok","expires_in":600}'"#;
        let command = command(line, folder.path());
        let start = Timestamp::now();
        for (seconds, times) in [(0, 1), (560, 1), (575, 2)] {
            command.current(start + SignedDuration::from_secs(seconds), None).await.unwrap();
            assert_eq!(runs(folder.path()), times, "after {seconds} s");
        }
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_does_not_stop_it_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let command = command(&format!("{NEXT}; sleep 0.2"), folder.path());
        let now = Timestamp::now();
        assert!(timeout(Duration::from_millis(50), command.current(now, None)).await.is_err());
        assert_eq!(command.current(now, None).await.unwrap().token.expose_secret(), "tok_1");
        assert_eq!(runs(folder.path()), 1);
    }

    #[tokio::test]
    async fn failures_are_told_without_what_was_printed() {
        let folder = tempfile::tempdir().unwrap();
        for (line, part) in [
            ("echo sekret; echo sekret >&2; exit 3", "exit status: 3"),
            ("no-such-program-sekret", "exit status: 127"),
            ("true", "empty"),
            ("echo sekret two", "not a token"),
            ("printf '\\377\\376'", "not text"),
            ("yes sekret", "more than 65536 bytes"),
            ("kill -9 $$", "signal: 9"),
        ] {
            let command = command(line, folder.path());
            let fault = command.current(Timestamp::now(), None).await.unwrap_err();
            let shown = format!("{fault:?} {command:?}");
            assert!(shown.contains(part) && !shown.contains("sekret"), "{shown}");
        }
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_given_up() {
        let line = CommandLine::new("sleep 1000".to_owned(), "".into());
        let fault = run(&line, Timestamp::now(), Duration::from_millis(50)).await.unwrap_err();
        assert!(format!("{fault:?}").contains("within 50ms"), "{fault:?}");
    }

    #[tokio::test]
    async fn what_is_given_up_ends_with_all_that_it_started() {
        let mut shell = CommandLine::new("sleep 1000 & sleep 1000".to_owned(), "".into()).shell();
        let mut running = Group::new(shell.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap());
        let mut stdout = running.child.stdout.take().unwrap();
        drop(running);
        // The pipe ends when no process holds its other end.
        let ended = timeout(Duration::from_secs(60), stdout.read_to_end(&mut Vec::new())).await;
        assert_eq!(ended.unwrap().unwrap(), 0);
    }
}
