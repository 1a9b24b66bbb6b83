//! Parsing of any event stream, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::transport::event_stream(bytes));
