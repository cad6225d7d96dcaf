//! `fetchwell bench cursor`: measures encoding and decoding of cursors.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fetchwell_core::saturate::saturated;
use fetchwell_state::StateError;
use fetchwell_state::cursor::{Claims, Clock, Keys, Kind, Skew};
use serde::Serialize;

use super::times::percentile;
use crate::app::failure::Failure;
use crate::cli::print::{Printer, grouped};

/// Number of measurements, so that a hundredth of them is a large sample.
const TIMES: u32 = 100_000;

#[derive(Debug, Serialize)]
pub(super) struct CursorTimes {
    encode: Nanos,
    decode: Nanos,
    chars: usize,
}

/// Percentiles in nanoseconds.
#[derive(Debug, Serialize)]
struct Nanos {
    p50_ns: u64,
    p99_ns: u64,
}

pub(super) fn run(printer: Printer) -> Result<(), Failure> {
    let times = measure()?;
    if printer.json {
        printer.value(&times);
    } else {
        times.print(printer);
    }
    Ok(())
}

pub(super) fn measure() -> Result<CursorTimes, Failure> {
    let keys = Keys::in_memory().map_err(StateError::from)?;
    let now = Clock::new(Skew::default()).now();
    let claims = Claims { kind: Kind::Search, issued: now, offset: 50, reference: [7; 16] };
    let cursor = keys.seal(&claims, now);
    Ok(CursorTimes {
        encode: measured(|| keys.seal(black_box(&claims), now)),
        decode: measured(|| keys.open(black_box(&cursor), now)),
        chars: cursor.len(),
    })
}

impl CursorTimes {
    pub(super) fn print(&self, printer: Printer) {
        for (name, Nanos { p50_ns, p99_ns }) in [("encode", &self.encode), ("decode", &self.decode)] {
            printer.line(format_args!("{name}  p50 {} ns  p99 {} ns", grouped(*p50_ns), grouped(*p99_ns)));
        }
        printer.line(format_args!("{} characters", self.chars));
    }
}

fn measured<Answer>(mut call: impl FnMut() -> Answer) -> Nanos {
    let mut taken: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let started = Instant::now();
            black_box(call());
            started.elapsed()
        })
        .collect();
    taken.sort_unstable();
    let nanos = |share| saturated::<u64>(percentile(&taken, share).as_nanos());
    Nanos { p50_ns: nanos(50), p99_ns: nanos(99) }
}
