//! Parsing of any text with the profile `mcp-json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_config::fuzzing::configuration(mcp_config::Profile::McpJson, bytes));
