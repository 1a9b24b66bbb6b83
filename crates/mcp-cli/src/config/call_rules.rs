//! The rules for calls of a command: those of the administrator, then those of the command line.

use std::env;
use std::path::Path;

use mcp_host_model::{CallEffect, CallRule};
use mcp_host_runtime::{CallAnswers, CallRuleOptions};
use mcp_host_transport::open_regular_file;

use crate::args::CallRuleArgs;
use crate::config::project_trust::read_administrator_file;
use crate::output::failure::Failure;
use crate::runtime::bounded_read::{read_bytes, to_text};
use crate::runtime::run_blocking;

/// The rules of the administrator, which come first.
const ADMINISTRATOR_FILE: &str = "/etc/mcp-host/call-rules";

/// The maximum size of a file of rules.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The rules of a command, with the stored answers and without a prompt.
pub(crate) async fn read_rules(args: &CallRuleArgs) -> Result<CallRuleOptions, Failure> {
    let args = args.clone();
    run_blocking(move || read_rules_blocking(&args)).await
}

/// Like [`read_rules`]. Blocks.
pub(crate) fn read_rules_blocking(args: &CallRuleArgs) -> Result<CallRuleOptions, Failure> {
    let CallRuleArgs { call_rule, call_rules, call_default } = args;
    let administrator =
        read_administrator_file(Path::new(ADMINISTRATOR_FILE), MAX_FILE_BYTES).map_err(Failure::new)?;
    let mut options = CallRuleOptions::default();
    options.rules = parse_rules(&administrator.unwrap_or_default(), Path::new(ADMINISTRATOR_FILE))?;
    options.rules.extend(call_rule.iter().cloned());
    if let Some(path) = call_rules {
        let failed = |error| Failure::usage(format!("--call-rules: cannot read {}: {error}", path.display()));
        let bytes =
            open_regular_file(path).and_then(|file| read_bytes(file, MAX_FILE_BYTES)).map_err(failed)?;
        let text = to_text(bytes).map_err(failed)?;
        options.rules.extend(parse_rules(&text, path)?);
    }
    options.default = call_default.unwrap_or(CallEffect::Allow);
    options.answers = call_answers();
    Ok(options)
}

/// The stored answers about calls. `None` without a state folder.
pub(crate) fn call_answers() -> Option<CallAnswers> {
    let path = mcp_host_runtime::state_path("mcp-host/call-answers.json", &|name| env::var_os(name)).ok()?;
    Some(CallAnswers::new(path))
}

/// Parses the lines of a file. Empty ones and those that begin with `#` are no rules.
fn parse_rules(text: &str, path: &Path) -> Result<Vec<CallRule>, Failure> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| {
        line.parse().map_err(|error| Failure::usage(format!("{}, line {number}: {error}", path.display())))
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match parse_rules(text, Path::new("r")) {
            Ok(rules) => rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(Failure::Error { message, .. }) => message,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn cp_015_file_of_rules_has_one_per_line() {
        check("# all\nask tools=a\n\n  deny  \n", "ask tools=a; deny");
        check("ask\nalow\n", "r, line 2: a rule begins with `allow`, `ask` or `deny`");
    }

    #[test]
    fn cp_015_rules_behind_the_limit_of_a_file_are_not_lost_silently() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules");
        std::fs::write(&path, "#".repeat(MAX_FILE_BYTES as usize) + "\ndeny\n").unwrap();
        let args = CallRuleArgs { call_rule: Vec::new(), call_rules: Some(path), call_default: None };
        let Err(Failure::Error { message, .. }) = read_rules_blocking(&args) else { panic!() };
        assert!(message.ends_with("larger than 1 MiB"), "{message}");
    }
}
