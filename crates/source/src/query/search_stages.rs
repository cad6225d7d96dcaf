//! The stages of a search and their times, for a query that asks for an explanation.

use std::time::Instant;

use fetchwell_core::handle::SourceName;

/// A stage of a search. Stages of several sources overlap, because sources are searched at the same time.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TimedStage {
    /// Name of the stage.
    pub name: &'static str,
    /// Source that it belongs to, if several are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// Time that it took, in microseconds.
    pub micros: u64,
}

/// Measures the stages of a search, one after the other. Without an explanation it reads no clock and keeps nothing.
#[derive(Debug, Default)]
pub struct StageClock {
    /// End of the last stage; `None` if nothing is measured.
    last: Option<Instant>,
    stages: Vec<TimedStage>,
}

impl StageClock {
    /// Starts the first stage of a query, which is measured if `explains`.
    #[must_use]
    pub fn start(explains: bool) -> Self {
        Self { last: explains.then(Instant::now), stages: Vec::new() }
    }

    /// Ends a stage and starts the next one. The times of stages with one name are added.
    pub fn end(&mut self, name: &'static str) {
        let Some(last) = &mut self.last else { return };
        let now = Instant::now();
        let micros = u64::try_from(now.duration_since(*last).as_micros()).unwrap_or(u64::MAX);
        *last = now;
        match self.stages.iter_mut().find(|stage| stage.name == name) {
            Some(known) => known.micros = known.micros.saturating_add(micros),
            None => self.stages.push(TimedStage { name, source: None, micros }),
        }
    }

    /// Returns the stages that ended, in their order.
    #[must_use]
    pub fn into_stages(self) -> Vec<TimedStage> {
        self.stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_measured_on_request() {
        for (explains, expect) in [(true, vec!["words", "score"]), (false, vec![])] {
            let mut clock = StageClock::start(explains);
            ["words", "score", "words"].into_iter().for_each(|name| clock.end(name));
            let names: Vec<&str> = clock.into_stages().iter().map(|stage| stage.name).collect();
            assert_eq!(names, expect);
        }
    }
}
