//! Any patterns and names.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::registry::patterns(bytes));
