//! Any bytes of an event stream, in any chunks.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::internal::fuzzing::event_stream(bytes));
