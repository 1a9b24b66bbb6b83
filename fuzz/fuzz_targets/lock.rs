//! Parsing of any text as a lock file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::registry::lock(bytes));
