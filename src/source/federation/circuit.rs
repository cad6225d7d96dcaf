//! Leaving a source alone that fails again and again.
//!
//! A source that does not answer costs every call its deadline. After `FAILURES` failures in a row it is not
//! asked for a while; then one question is let through as a probe, and its answer decides. A pause that the
//! source itself asked for is kept as it asked. Time comes in as a value.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row that open a circuit.
const FAILURES: u32 = 3;

/// How long a source is left alone at first. Each probe that fails doubles it, up to [`MAX_PAUSE`].
const PAUSE: Duration = Duration::from_secs(5);

/// The longest that a source is left alone for failures of its own.
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// The longest pause that a source may ask for: it may have been mistaken, and only a question shows that it is
/// well.
const MAX_ASKED_PAUSE: Duration = Duration::from_secs(600);

/// Whether a source is asked.
#[derive(Debug, Default)]
pub(super) struct Circuit(Mutex<State>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    /// Failures since the last answer.
    failures: u32,
    /// Until when it is left alone.
    until: Option<Instant>,
    /// How long it was left alone last.
    pause: Duration,
    /// One question is on its way to find out.
    is_probing: bool,
}

/// How a source is doing, as `doctor` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// It is asked.
    Closed,
    /// It is left alone.
    Open,
    /// It is asked once, to find out.
    HalfOpen,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered, though perhaps with a refusal.
    Answered,
    /// The source failed.
    Failed,
    /// The source asks for a pause.
    Pause(Duration),
}

/// Leave to ask one question. Dropped without an outcome, it leaves everything as it was.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    circuit: &'a Circuit,
    is_probe: bool,
}

impl Circuit {
    /// Leave to ask, or how long to wait.
    pub(super) fn enter(&self, now: Instant) -> Result<Pass<'_>, Duration> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_probe = match state.until {
            None => false,
            Some(until) if now < until => return Err(until - now),
            // The probe takes as long as it takes; nobody else waits for it.
            Some(_) if state.is_probing => return Err(state.pause),
            Some(_) => true,
        };
        state.is_probing |= is_probe;
        Ok(Pass { circuit: self, is_probe })
    }

    /// How it is, the failures in a row, and how long it is still left alone.
    pub(super) fn state(&self, now: Instant) -> (CircuitState, u32, Duration) {
        let state = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.until {
            None => (CircuitState::Closed, state.failures, Duration::ZERO),
            Some(until) if now < until => (CircuitState::Open, state.failures, until - now),
            Some(_) => (CircuitState::HalfOpen, state.failures, Duration::ZERO),
        }
    }
}

impl Pass<'_> {
    /// Tells what became of the question.
    pub(super) fn settle(self, outcome: Outcome, now: Instant) {
        let mut state = self.circuit.0.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Outcome::Answered => *state = State::default(),
            Outcome::Pause(pause) => {
                state.failures = state.failures.saturating_add(1);
                state.pause = pause.min(MAX_ASKED_PAUSE);
                state.until = now.checked_add(state.pause);
            }
            Outcome::Failed => {
                state.failures = state.failures.saturating_add(1);
                // Of many questions that fail together only the first opens the circuit.
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
            self.circuit.0.lock().unwrap_or_else(PoisonError::into_inner).is_probing = false;
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
