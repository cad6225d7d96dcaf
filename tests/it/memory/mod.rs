//! Memory of the process, long records, and resources of ended calls.

mod leaks;
mod long_records;
mod resident_memory;
#[cfg(target_os = "linux")]
mod text_in_flight;
