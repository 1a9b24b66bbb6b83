//! Parsing of any text as JSON with and without comments.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::config::jsonc(bytes));
