//! Counts of all outcomes: a run must have seen every outcome of a list.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// Counts by actor and outcome.
#[derive(Default)]
pub(super) struct Tally(Mutex<BTreeMap<(&'static str, String), u64>>);

/// The outcomes that every run must see.
const EXPECTED: [(&str, &str); 20] = [
    ("call of calm", "answered"),
    ("call of calm", "cancelled"),
    ("call of calm", "failed as told"),
    ("call of calm", "too late"),
    ("call of wild", "answered"),
    ("call of wild", "cancelled"),
    ("dialog", "begun"),
    ("dialog", "crashed its server"),
    ("dialog", "found its own state"),
    ("edit", "made"),
    ("exit", "made"),
    ("kill", "made"),
    ("list change", "made"),
    ("generations", "published"),
    ("client with sessions", "answered"),
    ("client with sessions", "vanished"),
    ("client without sessions", "answered"),
    ("client without sessions", "vanished"),
    ("client on a socket", "vanished in a call"),
    ("client on a socket", "does not read"),
];

impl Tally {
    pub(super) fn count(&self, who: &'static str, what: impl Into<String>) {
        *self.0.lock().unwrap().entry((who, what.into())).or_insert(0) += 1;
    }

    /// The required outcomes that have not occurred yet.
    pub(super) fn absent(&self) -> Vec<(&'static str, &'static str)> {
        let counts = self.0.lock().unwrap();
        let is_absent = |it: &(&'static str, &str)| !counts.contains_key(&(it.0, it.1.to_owned()));
        EXPECTED.into_iter().filter(is_absent).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((who, what), number) in self.0.lock().unwrap().iter() {
            writeln!(f, "{number:>10}  {who}: {what}")?;
        }
        Ok(())
    }
}
