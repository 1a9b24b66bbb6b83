//! Rules that decide on 10,000 names.

use std::hint::black_box;

use mcp_benches::Failure;
use mcp_host_model::{ExposureFilter, ExposureRules, NamePolicy, ServerId};
use mcp_host_registry::CompiledRules;

fn names() -> Vec<String> {
    (0..10_000).map(|it| format!("area{}_resource{}_action{it}", it % 7, it % 113)).collect()
}

/// A hundred patterns, few of which match, so that most names are tested against all.
fn rules() -> ExposureRules {
    let pattern = |it: usize| format!("area{}*_resource{it}_*{it}", it % 9);
    let mut rules = ExposureRules::new(NamePolicy::Reject);
    rules.filter = ExposureFilter {
        whitelist: (0..50).map(pattern).collect(),
        blacklist: (50..100).map(pattern).collect(),
    };
    rules
}

pub(crate) fn matching(times: usize) -> Result<(), Failure> {
    let (names, rules, server) = (names(), rules(), ServerId::parse("server")?);
    for _ in 0..times {
        let decider = CompiledRules::new(&server, &rules);
        black_box(names.iter().filter(|it| decider.allows(it)).count());
    }
    Ok(())
}

pub(crate) fn deciding(times: usize) -> Result<(), Failure> {
    let (names, rules, server) = (names(), rules(), ServerId::parse("server")?);
    for _ in 0..times {
        let decider = CompiledRules::new(&server, &rules);
        black_box(names.iter().map(|it| decider.decide(it)).collect::<Vec<_>>());
    }
    Ok(())
}
