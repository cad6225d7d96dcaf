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

/// Waits for Ctrl-C or, on Unix, SIGTERM.
pub(crate) async fn requested() -> StopSignal {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return StopSignal::Terminate,
                _ = tokio::signal::ctrl_c() => return StopSignal::Interrupt,
            }
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    StopSignal::Interrupt
}
