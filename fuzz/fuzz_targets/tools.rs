//! Any list of tools: names, projections to providers, and schema validation.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::registry::tools(bytes));
