//! Arguments with rules for calls, of the commands that call tools.

use std::path::PathBuf;

use clap::Args;
use mcp_host_model::{CallEffect, CallRule};

use crate::args::choice::{Choices, choice_parser};

const EFFECTS: Choices<CallEffect> = &[
    ("allow", "They are sent", CallEffect::Allow),
    ("ask", "You are asked first", CallEffect::Ask),
    ("deny", "They are refused", CallEffect::Deny),
];

/// Rules for calls.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CallRuleArgs {
    /// Rule for calls, such as 'ask tools=write_*' or 'deny servers=prod hints=destructive': EFFECT [servers=a,b*]
    /// [tools=…] [hints=reads,writes,destructive] [users=…]. The first rule that matches decides; those of the
    /// configuration (`calls`) come after these; may be given several times
    #[arg(long, value_name = "RULE")]
    pub(crate) call_rule: Vec<CallRule>,
    /// File of such rules, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) call_rules: Option<PathBuf>,
    /// What happens to calls that no rule matches [default: allow]
    #[arg(long, value_parser = choice_parser(EFFECTS), value_name = "EFFECT")]
    pub(crate) call_default: Option<CallEffect>,
}
