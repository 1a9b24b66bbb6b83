//! Any text, cut at its variables.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_config::fuzzing::template(bytes));
