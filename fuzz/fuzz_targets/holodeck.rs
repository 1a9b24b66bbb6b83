//! Parsing of any text with the profile `holodeck`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::config::configuration(mcp_host_config::Profile::HoloDeck, bytes));
