//! Parsing of any text as a login file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::host::login(bytes));
