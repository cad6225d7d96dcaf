//! Signals that ask the program to end.

/// Signal that asked the program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C or SIGINT.
    Interrupt,
    /// The signal SIGTERM.
    Terminate,
}

impl StopSignal {
    /// Returns the exit code of a program that a signal ended, as in shells: 128 plus the number of the signal.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Registers for Ctrl-C and, on Unix, SIGTERM, and returns a future that waits for one of them.
///
/// A signal after this call is not lost, and does not kill the program, even if the future is polled later. Must be called
/// within a Tokio runtime.
pub(crate) fn requested() -> impl Future<Output = StopSignal> + Send + 'static {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = signal(SignalKind::terminate()).ok().zip(signal(SignalKind::interrupt()).ok());
        async move {
            let Some((mut terminate, mut interrupt)) = signals else { return interrupted().await };
            tokio::select! {
                _ = terminate.recv() => StopSignal::Terminate,
                _ = interrupt.recv() => StopSignal::Interrupt,
            }
        }
    }
    #[cfg(not(unix))]
    interrupted()
}

async fn interrupted() -> StopSignal {
    let _ = tokio::signal::ctrl_c().await;
    StopSignal::Interrupt
}
