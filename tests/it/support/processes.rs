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

/// Returns a memory value of a process, such as `VmRSS` or `VmHWM`, in KiB.
pub(crate) fn memory_kib(process: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let figure = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    figure.trim().trim_end_matches(" kB").parse().unwrap()
}
