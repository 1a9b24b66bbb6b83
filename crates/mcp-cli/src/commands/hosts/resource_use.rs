//! The memory and processor time of processes, from `/proc`. On other systems than Linux they are unknown.

use std::collections::HashMap;
use std::time::Duration;

/// What a process and its descendants use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ResourceUse {
    /// The resident memory, in bytes.
    pub(super) memory: u64,
    /// The processor time since the start of each process.
    pub(super) processor: Duration,
}

/// The processes of the system at one moment.
#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    own: HashMap<u32, ResourceUse>,
    children: HashMap<u32, Vec<u32>>,
}

impl ProcessTable {
    /// Reads the processes. Blocks.
    #[cfg(target_os = "linux")]
    pub(super) fn read() -> ProcessTable {
        let mut res = ProcessTable::default();
        let Ok(processes) = procfs::process::all_processes() else { return res };
        let (ticks, page) = (procfs::ticks_per_second(), procfs::page_size());
        for stat in processes.flatten().filter_map(|process| process.stat().ok()) {
            let (Ok(process), Ok(parent)) = (u32::try_from(stat.pid), u32::try_from(stat.ppid)) else {
                continue;
            };
            let processor = Duration::from_millis((stat.utime + stat.stime) * 1000 / ticks.max(1));
            res.own.insert(process, ResourceUse { memory: stat.rss * page, processor });
            res.children.entry(parent).or_default().push(process);
        }
        res
    }

    /// Reads nothing.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn read() -> ProcessTable {
        ProcessTable::default()
    }

    /// What a process itself uses.
    pub(super) fn process(&self, process: u32) -> Option<ResourceUse> {
        self.own.get(&process).copied()
    }

    /// What a process and its descendants use.
    pub(super) fn tree(&self, process: u32) -> Option<ResourceUse> {
        let mut res = self.process(process)?;
        let mut waiting = vec![process];
        // The table is a snapshot, so an id that the system uses again could form a circle.
        let mut rest = self.own.len();
        while let Some(process) = waiting.pop()
            && rest > 0
        {
            rest -= 1;
            for child in self.children.get(&process).into_iter().flatten() {
                let child_use = self.process(*child).unwrap_or_default();
                res.memory += child_use.memory;
                res.processor += child_use.processor;
                waiting.push(*child);
            }
        }
        Some(res)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sh_009_tree_includes_descendants() {
        let use_of = |memory| ResourceUse { memory, processor: Duration::from_secs(memory) };
        let table = ProcessTable {
            own: [(1, use_of(1)), (2, use_of(2)), (3, use_of(4)), (4, use_of(8))].into(),
            children: [(1, vec![2, 4]), (2, vec![3])].into(),
        };
        assert_eq!(table.process(2), Some(use_of(2)));
        assert_eq!(table.tree(2), Some(use_of(6)));
        assert_eq!(table.tree(1), Some(use_of(15)));
        assert_eq!(table.tree(9), None);
    }

    #[test]
    fn sh_009_own_process_is_in_the_table() {
        let used = ProcessTable::read().process(std::process::id());
        assert_eq!(used.is_some_and(|used| used.memory > 0), cfg!(target_os = "linux"));
    }
}
