//! Tests of the program: output, exit codes and remaining processes.

#![expect(clippy::unwrap_used, reason = "tests panic on errors")]

mod acp_check;
#[path = "../../../mcp-oauth/tests/it/authority.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod authority;
mod broken;
mod call;
mod check;
mod cli;
mod contracts;
mod dialects;
mod doctor;
mod editing;
mod endings;
mod explain;
mod help;
mod hostile;
mod importing;
mod lists;
mod lock;
mod person;
mod recording;
mod screen;
mod secrets;
mod serve;
mod sessions;
mod shell;
mod support;
mod terminal;
mod tools;
mod watch;
