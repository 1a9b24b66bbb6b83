//! Parsing of any text with the profile `acp-v2`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::config::configuration(mcp_host_config::Profile::AcpV2, bytes));
