//! The binary started by another program or with a small disk, and the memory of processes.

#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::process::Stdio;

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

/// Returns the built binary with a file system of this size in KiB at a folder, or `None` if the system allows no
/// mounts.
#[cfg(target_os = "linux")]
pub(crate) fn with_disk(folder: &Path, kib: usize) -> Option<Command> {
    let can_mount = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs"])
        .arg(folder)
        .stderr(Stdio::null())
        .status();
    if !can_mount.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = starter("unshare");
    let script = format!("mount -t tmpfs -o size={kib}k tmpfs \"$0\" && exec \"$@\"");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(folder);
    command.arg(binary().get_program());
    Some(command)
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
