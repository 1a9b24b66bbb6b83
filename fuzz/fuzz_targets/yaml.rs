//! Any text, read as YAML.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_config::fuzzing::yaml(bytes));
