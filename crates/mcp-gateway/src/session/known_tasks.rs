//! The tasks that the client of a session knows. It is notified of their status.

use std::collections::VecDeque;

use mcp_host_model::ServerId;
use parking_lot::Mutex;

/// Maximum number of tasks. Later ones replace the oldest.
const MAX_TASKS: usize = 256;

/// The tasks that the client of a session knows: hashes, because a server chooses the length of its ids.
#[derive(Debug, Default)]
pub(crate) struct KnownTasks(Mutex<VecDeque<blake3::Hash>>);

impl KnownTasks {
    /// Adds a task of a server.
    pub(crate) fn add(&self, server: &ServerId, id: &str) {
        let task = task_hash(server, id);
        let mut tasks = self.0.lock();
        if tasks.contains(&task) {
            return;
        }
        if tasks.len() == MAX_TASKS {
            tasks.pop_front();
        }
        tasks.push_back(task);
    }

    /// Whether the client knows this task.
    pub(crate) fn contains(&self, server: &ServerId, id: &str) -> bool {
        self.0.lock().contains(&task_hash(server, id))
    }
}

fn task_hash(server: &ServerId, id: &str) -> blake3::Hash {
    // The id of a server contains no line break.
    blake3::hash(format!("{server}\n{id}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_tasks_of_each_server_are_known() {
        let [one, two] = ["one", "two"].map(|it| ServerId::parse(it).unwrap());
        let tasks = KnownTasks::default();
        for number in 0..=MAX_TASKS {
            tasks.add(&one, &number.to_string());
            tasks.add(&one, &number.to_string());
        }
        assert!(!tasks.contains(&one, "0") && tasks.contains(&one, "1"));
        assert!(tasks.contains(&one, &MAX_TASKS.to_string()));
        assert!(!tasks.contains(&two, "1"));
    }
}
