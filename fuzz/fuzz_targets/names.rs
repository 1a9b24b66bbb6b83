//! Any rules, and names that they decide on.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_registry::fuzzing::names(bytes));
