//! The binary started by another program, and the memory of processes.

use std::process::Command;

use super::binary;

/// Returns another program with the environment of the binary, which it starts.
pub(crate) fn starter(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, value) in binary().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Returns the memory that a process has allocated, in KiB: `VmRSS` or the peak `VmHWM`, without the pages of files. The
/// pages of a debug binary alone are more than 50 MB, and change with each line of the program.
pub(crate) fn memory_kib(process: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let read = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
        value.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    read(name) - read("RssFile")
}
