//! Any two JSON values, and their hashes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_registry::fuzzing::digest(bytes));
