//! Returns freed memory to the system.
//!
//! The allocator of glibc keeps the memory of freed objects unless it is at the end of a heap, so a process would keep the size that it
//! had under its highest load. Allocators of other systems return memory by themselves.
//!
//! Uses no other crate of the workspace.

use std::thread;
use std::time::Duration;

/// Interval between two returns.
const INTERVAL: Duration = Duration::from_secs(10);

/// Starts a thread that returns freed memory every ten seconds in which the process used CPU time.
///
/// A return takes about a millisecond for each 100 MB. Without the thread, the process works as well and is larger.
pub fn return_freed_memory() {
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let _ = thread::Builder::new().name("heap".to_owned()).stack_size(64 * 1024).spawn(run);
    }
}

fn run() {
    let mut used = None;
    loop {
        // Nothing wakes the thread but the end of the interval.
        thread::park_timeout(INTERVAL);
        let now = cpu_time();
        if now.is_none() || now != used {
            trim();
            // The time of the return itself does not count.
            used = cpu_time();
        }
    }
}

/// Returns the CPU time of the process in ticks of the kernel, or `None` if the kernel does not say it.
fn cpu_time() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses can contain spaces. The fields after it begin with the third one of proc(5).
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    Some(times.next()? + times.next()?)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    #[expect(unsafe_code, reason = "the function of glibc has no safe binding")]
    // SAFETY: `malloc_trim` takes no pointer, locks each heap itself, and changes no memory that is allocated.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_pages() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn freed_memory_is_returned() {
        // The object after them stays, so that the heap cannot shrink at its end.
        let mut objects: Vec<Option<Box<[u8; 4_000]>>> =
            (0..20_000).map(|_| Some(Box::new([1; 4_000]))).collect();
        let kept: Box<[u8]> = vec![1; 4_000].into();
        objects.iter_mut().for_each(|object| *object = None);
        let before = resident_pages();
        trim();
        let after = resident_pages();
        assert!(after + 10_000 < before, "{before} pages before, {after} after");
        assert_eq!(kept.len(), 4_000);
        assert!(cpu_time().is_some());
    }
}
