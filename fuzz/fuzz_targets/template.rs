//! Parsing of variables in any text.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::config::template(bytes));
