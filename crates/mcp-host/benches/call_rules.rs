//! The price of a decision about a call, with 1,000 rules. `cargo bench -p mcp-host-runtime --bench call_rules` prints
//! the time of a decision: the median and the slowest of 99 %.
//!
//! Each decision is about another of 1,000 tools. The rules are exact names, or patterns that a name is compared with
//! up to its end. The first decision about a tool is measured apart, because later ones are remembered.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_host_model::{RawJson, ServerId, Tool, read_tools};
use mcp_host_runtime::{CallPolicy, CallRuleOptions, PolicyCall, RulePolicy, ToolCall};

/// The number of rules, and of tools.
const COUNT: usize = 1000;

/// The number of rounds over all tools.
const ROUNDS: usize = 100;

fn main() {
    let tools: Vec<Arc<Tool>> = (0..COUNT).map(tool).collect();
    let server = ServerId::parse("files").unwrap();
    let call = ToolCall::new("x", RawJson::empty_object());
    let decide = |policy: &RulePolicy, tool: &Arc<Tool>| {
        let begun = Instant::now();
        black_box(policy.decide(black_box(&PolicyCall::new(&server, tool, &call))));
        begun.elapsed()
    };
    println!("| rules | decision | median | 99 % |");
    println!("|---|---|---|---|");
    for (name, rule) in
        [("none", None), ("names", Some("allow tools=tool_N")), ("patterns", Some("allow tools=*N_x,*_N"))]
    {
        let mut options = CallRuleOptions::default();
        let rules =
            rule.into_iter().flat_map(|rule| (0..COUNT).map(move |at| rule.replace('N', &at.to_string())));
        options.rules = rules.map(|it| it.parse().unwrap()).collect();
        let policy = RulePolicy::new(options);
        let first = tools.iter().map(|it| decide(&policy, it)).collect();
        let later = (0..ROUNDS).flat_map(|_| tools.iter().map(|it| decide(&policy, it))).collect();
        print_row(name, "first of a tool", first);
        print_row(name, "later", later);
    }
}

fn tool(at: usize) -> Arc<Tool> {
    let page = format!(r#"{{"tools": [{{"name": "tool_{at}", "inputSchema": {{"type": "object"}}}}]}}"#);
    Arc::new(read_tools(&RawJson::parse(page.into()).unwrap()).unwrap().items.remove(0))
}

fn print_row(rules: &str, decision: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_nanos();
    println!("| {rules} | {decision} | {} ns | {} ns |", at(0.5), at(0.99));
}
