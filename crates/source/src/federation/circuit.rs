//! Circuit breaker of a source.
//!
//! A source that does not answer costs every call its deadline. After `FAILURES` failures in a row the circuit opens
//! and no call is made. After a pause one call goes through as a probe, and its outcome closes or reopens the
//! circuit. A pause that the source itself requests is kept. The time is an argument, so that nothing here reads a
//! clock.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Number of failures in a row that open the circuit.
const FAILURES: u32 = 3;

/// First pause of an open circuit. Each failed probe doubles it, up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(5);

/// Maximum pause after failures.
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Maximum pause that a source can request. The request may be a mistake, and only a call shows that the source
/// works.
const MAX_ASKED_PAUSE: Duration = Duration::from_secs(600);

/// Circuit breaker of one source.
#[derive(Debug, Default)]
pub(super) struct Circuit(Mutex<State>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    /// Failures since the last answer.
    failures: u32,
    /// End of the pause; `None` while the circuit is closed.
    until: Option<Instant>,
    /// Length of the last pause.
    pause: Duration,
    /// True while a probe is in flight.
    is_probing: bool,
}

/// State of a circuit breaker, as `doctor` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Calls are made.
    Closed,
    /// No calls are made.
    Open,
    /// One call is made as a probe.
    HalfOpen,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The source answered, possibly with an error about the call.
    Answered,
    /// The source failed.
    Failed,
    /// The source requests a pause.
    Pause(Duration),
}

/// Permission for one call. Dropped without an outcome, it leaves the circuit unchanged.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    circuit: &'a Circuit,
    is_probe: bool,
}

impl Circuit {
    /// Returns permission for a call, or the time until the next attempt.
    pub(super) fn enter(&self, now: Instant) -> Result<Pass<'_>, Duration> {
        let mut state = self.0.lock();
        let is_probe = match state.until {
            None => false,
            Some(until) if now < until => return Err(until - now),
            // Other calls do not wait for the probe.
            Some(_) if state.is_probing => return Err(state.pause),
            Some(_) => true,
        };
        state.is_probing |= is_probe;
        Ok(Pass { circuit: self, is_probe })
    }

    /// Returns the state, the number of failures in a row and the remaining pause.
    pub(super) fn state(&self, now: Instant) -> (CircuitState, u32, Duration) {
        let state = *self.0.lock();
        match state.until {
            None => (CircuitState::Closed, state.failures, Duration::ZERO),
            Some(until) if now < until => (CircuitState::Open, state.failures, until - now),
            Some(_) => (CircuitState::HalfOpen, state.failures, Duration::ZERO),
        }
    }
}

impl Pass<'_> {
    /// Records the outcome of the call.
    pub(super) fn settle(self, outcome: Outcome, now: Instant) {
        let mut state = self.circuit.0.lock();
        match outcome {
            Outcome::Answered => *state = State::default(),
            Outcome::Pause(pause) => {
                state.failures = state.failures.saturating_add(1);
                state.pause = pause.min(MAX_ASKED_PAUSE);
                state.until = now.checked_add(state.pause);
            }
            Outcome::Failed => {
                state.failures = state.failures.saturating_add(1);
                // If many concurrent calls fail, only the first failure opens the circuit.
                let opens = self.is_probe || state.until.is_none();
                if opens && state.failures >= FAILURES {
                    state.pause = if self.is_probe { state.pause.saturating_mul(2) } else { PAUSE };
                    state.pause = state.pause.clamp(PAUSE, MAX_PAUSE);
                    state.until = now.checked_add(state.pause);
                }
            }
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.circuit.0.lock().is_probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(circuit: &Circuit, now: Instant) {
        circuit.enter(now).unwrap().settle(Outcome::Failed, now);
    }

    fn opened(now: Instant) -> Circuit {
        let circuit = Circuit::default();
        (0..FAILURES).for_each(|_| fail(&circuit, now));
        circuit
    }

    #[test]
    fn it_opens_after_failures_in_a_row() {
        let now = Instant::now();
        let circuit = Circuit::default();
        for _ in 0..10 {
            fail(&circuit, now);
            fail(&circuit, now);
            circuit.enter(now).unwrap().settle(Outcome::Answered, now);
        }
        assert_eq!(circuit.state(now).0, CircuitState::Closed);
        let circuit = opened(now);
        assert_eq!(circuit.state(now), (CircuitState::Open, FAILURES, PAUSE));
        assert_eq!(circuit.enter(now).unwrap_err(), PAUSE);
    }

    #[test]
    fn one_probe_decides() {
        let now = Instant::now();
        let circuit = opened(now);
        let later = now + PAUSE;
        assert_eq!(circuit.state(later).0, CircuitState::HalfOpen);
        let probe = circuit.enter(later).unwrap();
        assert!(circuit.enter(later).is_err());
        probe.settle(Outcome::Failed, later);
        assert_eq!(circuit.state(later), (CircuitState::Open, FAILURES + 1, PAUSE * 2));
        let much_later = later + PAUSE * 2;
        circuit.enter(much_later).unwrap().settle(Outcome::Answered, much_later);
        assert_eq!(circuit.state(much_later), (CircuitState::Closed, 0, Duration::ZERO));
    }

    #[test]
    fn a_probe_that_was_called_off_decides_nothing() {
        let now = Instant::now();
        let circuit = opened(now);
        let later = now + PAUSE;
        drop(circuit.enter(later).unwrap());
        assert!(circuit.enter(later).is_ok());
    }

    #[test]
    fn questions_that_fail_together_open_it_once() {
        let now = Instant::now();
        let circuit = Circuit::default();
        let passes: Vec<Pass<'_>> = (0..20).map(|_| circuit.enter(now).unwrap()).collect();
        for pass in passes {
            pass.settle(Outcome::Failed, now + Duration::from_secs(1));
        }
        assert_eq!(circuit.state(now + Duration::from_secs(1)).2, PAUSE);
    }

    #[test]
    fn the_pause_is_bounded_and_a_pause_that_is_asked_for_is_kept() {
        let mut now = Instant::now();
        let circuit = opened(now);
        for _ in 0..20 {
            now += circuit.state(now).2;
            fail(&circuit, now);
        }
        assert_eq!(circuit.state(now).2, MAX_PAUSE);
        let circuit = Circuit::default();
        circuit.enter(now).unwrap().settle(Outcome::Pause(Duration::from_secs(600)), now);
        assert_eq!(circuit.state(now), (CircuitState::Open, 1, Duration::from_secs(600)));
    }
}
