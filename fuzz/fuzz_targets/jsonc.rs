//! Any text, read as JSON with comments and without.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_config::fuzzing::jsonc(bytes));
