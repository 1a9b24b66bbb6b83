//! Any text, read as the file of a login.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_host::fuzzing::login(bytes));
