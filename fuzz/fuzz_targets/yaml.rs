//! Parsing of any text as YAML.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::config::yaml(bytes));
