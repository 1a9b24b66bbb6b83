//! The real program: what it writes, how it ends, and what it leaves behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod acp_check;
#[path = "../../../mcp-oauth/tests/it/authority.rs"]
#[expect(dead_code, reason = "other tests ask it for more")]
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
