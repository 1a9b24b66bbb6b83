//! Parsing of any text as a `.env` file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::config::env_file(bytes));
