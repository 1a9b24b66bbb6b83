//! The processes that hold the output of the tests open after the tests have ended. Found on Linux only.

use std::fs;
use std::path::PathBuf;
use std::process::{self, Command};

/// The processes with this output, by the name that the system gives its pipe.
pub(super) struct OutputHolders {
    pipe: Option<PathBuf>,
}

impl OutputHolders {
    /// The standard output of a running process.
    pub(super) fn of_process(id: u32) -> OutputHolders {
        OutputHolders { pipe: fs::read_link(format!("/proc/{id}/fd/1")).ok() }
    }

    /// Ends all of them, and returns `: ` and their numbers and command lines; empty if none is found.
    pub(super) fn end_all(&self) -> String {
        let mut found = Vec::new();
        for id in self.ids() {
            let command_line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            found.push(format!(
                "{id} {}",
                String::from_utf8_lossy(&command_line).replace('\0', " ").trim_end()
            ));
            // It may have ended already.
            let _ = Command::new("kill").arg(id.to_string()).status();
        }
        if found.is_empty() { String::new() } else { format!(": {}", found.join(", ")) }
    }

    fn ids(&self) -> Vec<u32> {
        let Some(pipe) = &self.pipe else { return Vec::new() };
        let holds_pipe = |id: &u32| {
            let descriptors = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten();
            descriptors.flatten().any(|it| fs::read_link(it.path()).is_ok_and(|target| target == *pipe))
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|id| *id != process::id()).filter(holds_pipe).collect()
    }
}
