//! A writer of Prometheus' text format (0.0.4).

use std::fmt::{Display, Write};

/// The type of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type {
    Counter,
    Gauge,
    Histogram,
}

/// The text of an exposition, written one metric after the other.
#[derive(Debug, Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    /// Writes the header of a metric. Its samples follow.
    pub(crate) fn metric(&mut self, name: &str, kind: Type, help: &str) {
        let kind = match kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes one sample, with escaped label values.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            self.0.push(if number == 0 { '{' } else { ',' });
            let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let _ = write!(self.0, "{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Writes a metric with one sample and no labels.
    pub(crate) fn single(&mut self, name: &str, kind: Type, help: &str, value: impl Display) {
        self.metric(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Gauge with its samples, each of which has labels.
#[derive(Debug)]
pub struct Gauge<'a> {
    /// Name of the metric.
    pub name: &'a str,
    /// Description of the metric.
    pub help: &'a str,
    /// Labels and values.
    pub samples: Vec<(Vec<(&'a str, &'a str)>, u64)>,
}

/// Writes gauges that are measured when they are asked for. One without samples is left out.
#[must_use]
pub fn expose_gauges(gauges: &[Gauge<'_>]) -> String {
    let mut text = Exposition::default();
    for Gauge { name, help, samples } in gauges.iter().filter(|gauge| !gauge.samples.is_empty()) {
        text.metric(name, Type::Gauge, help);
        for (labels, value) in samples {
            text.sample(name, labels, value);
        }
    }
    text.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.metric("calls_total", Type::Counter, "Calls.");
        exposition.sample("calls_total", &[("a", "x\"y\\z\n"), ("b", "")], 3);
        exposition.single("share", Type::Gauge, "A share.", 0.5);
        assert_eq!(
            exposition.into_text(),
            "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{a=\"x\\\"y\\\\z\\n\",b=\"\"} 3\n\
             # HELP share A share.\n# TYPE share gauge\nshare 0.5\n"
        );
    }
}
