//! Parsing of any text as a `.env` file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_config::fuzzing::env_file(bytes));
