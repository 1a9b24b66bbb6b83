//! Any list of tools, shown, told to providers, and its schemas put to use.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_registry::fuzzing::tools(bytes));
