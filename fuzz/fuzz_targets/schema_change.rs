//! Comparison of any two JSON Schemas.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::schema::schema_change(bytes));
