//! Parser for the output of callgrind: the number of instructions and of allocations.
//!
//! The file defines a number for each name; functions and callees share the numbers.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The functions that allocate memory.
const ALLOCATION_FUNCTIONS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];

/// The counts of a run, or of one repetition.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
pub(super) struct Counts {
    pub(super) instructions: i64,
    pub(super) allocations: f64,
}

impl Counts {
    /// The cost of one repetition, from a long run (`self`) and a short run that has `times` repetitions less. Rounded,
    /// allocations to a tenth.
    pub(super) fn cost_per_repetition(self, short_run: Counts, times: u64) -> Counts {
        let times = times as f64;
        Counts {
            instructions: ((self.instructions - short_run.instructions) as f64 / times).round() as i64,
            allocations: ((self.allocations - short_run.allocations) / times * 10.0).round() / 10.0,
        }
    }
}

/// Parses a file. `None` if it has no total.
pub(super) fn parse_counts(text: &str) -> Option<Counts> {
    let mut allocating: HashMap<&str, bool> = HashMap::new();
    let mut is_allocating = false;
    let mut instructions = None;
    let mut allocations = 0.0;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(['=', ':']) else { continue };
        match key {
            "fn" | "cfn" => {
                let (number, name) = value.split_once(") ").unwrap_or((value.trim_end_matches(')'), ""));
                if !name.is_empty() {
                    // A recursive function has a suffix.
                    let name = name.split('\'').next().unwrap_or(name);
                    allocating.insert(number, ALLOCATION_FUNCTIONS.contains(&name));
                }
                if key == "cfn" {
                    is_allocating = allocating.get(number).copied().unwrap_or(false);
                }
            }
            "calls" if is_allocating => {
                allocations += value.split(' ').next()?.parse::<f64>().ok()?;
            }
            "totals" | "summary" => instructions = value.split_whitespace().next()?.parse().ok(),
            _ => {}
        }
    }
    Some(Counts { instructions: instructions?, allocations })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# callgrind format\nevents: Ir\nfn=(1) main\n10 5\ncfn=(2) malloc\ncalls=3 0\n10 60\n\
        cfn=(3) helper'2\ncalls=7 0\n11 9\n\nfn=(3)\n20 4\ncfn=(2)\ncalls=2 0\n20 40\ncfn=(4) realloc\ncalls=1 0\n\
        21 9\n\ntotals: 118\n";

    #[test]
    fn allocations_of_all_callers_are_added() {
        assert_eq!(parse_counts(FILE), Some(Counts { instructions: 118, allocations: 6.0 }));
        assert_eq!(parse_counts("events: Ir\n"), None);
    }

    #[test]
    fn start_and_end_are_not_in_the_cost_of_a_repetition() {
        let counts = |instructions, allocations| Counts { instructions, allocations };
        assert_eq!(counts(3500, 45.0).cost_per_repetition(counts(1500, 25.0), 20), counts(100, 1.0));
    }
}
