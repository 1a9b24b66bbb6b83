//! Hashes of any two JSON values.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::registry::digest(bytes));
