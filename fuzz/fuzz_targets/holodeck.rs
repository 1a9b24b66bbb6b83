//! Parsing of any text with the profile `holodeck`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_config::fuzzing::configuration(mcp_config::Profile::HoloDeck, bytes));
