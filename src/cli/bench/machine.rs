//! Description of the machine on which a benchmark ran.

use std::fmt;
use std::thread::available_parallelism;

use serde::Serialize;

/// Machine and build of a benchmark.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Machine {
    /// Model of the processor, if the system reports it.
    cpu: Option<String>,
    cores: usize,
    system: &'static str,
    architecture: &'static str,
    /// Build profile: `release` or `debug`.
    build: &'static str,
    version: &'static str,
}

impl Machine {
    pub(super) fn this() -> Self {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            cpu: model.map(|(_, model)| model.trim().to_owned()),
            cores: available_parallelism().map_or(1, usize::from),
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, system, architecture, build, version } = self;
        let cpu = cpu.as_deref().unwrap_or("an unnamed processor");
        write!(f, "fetchwell {version} ({build}) on {system} {architecture}, {cores} cores of {cpu}")
    }
}
