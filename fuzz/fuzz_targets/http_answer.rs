//! The bytes that a server of HTTP/1.1 answers with.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::fuzzing::http_answer(bytes));
