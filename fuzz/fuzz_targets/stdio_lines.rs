//! Any bytes out of a pipe, in any chunks.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::internal::fuzzing::stdio_lines(bytes));
