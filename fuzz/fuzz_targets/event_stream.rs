//! Parsing of any event stream, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::internal::fuzzing::event_stream(bytes));
