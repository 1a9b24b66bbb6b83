//! Tests of the program: output, exit codes and remaining processes.

#![expect(clippy::unwrap_used, reason = "tests panic on errors")]

mod acp_check;
mod add_words;
#[path = "../../../mcp-oauth/tests/it/authority.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod authority;
mod broken;
mod call;
mod call_rules;
mod check;
mod cli;
mod connect;
mod contracts;
mod dialects;
mod doctor;
mod edit_commands;
mod explain;
mod help;
mod hostile_servers;
mod import;
mod learn;
mod lists;
mod lock;
mod open_files;
mod otlp;
mod pin;
mod programs;
mod readiness;
mod recording;
mod schema_compare;
mod secrets;
mod serve;
mod serve_log;
mod sessions;
mod shared_host;
mod shell;
mod signals;
mod support;
mod target;
mod terminal;
mod terminal_output;
mod tools;
mod trust;
mod user_secrets;
mod views;
mod watch;
mod watch_screen;
