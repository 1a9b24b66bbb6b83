//! Parsing of any text as a recording.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::recording::recording(bytes));
