//! Classification of any bytes as a JSON-RPC frame.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::transport::scan_frame(bytes));
