//! Any rules, and names that they filter.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::registry::names(bytes));
