//! Any text, read by the profile `acp-v2`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_config::Profile;

fuzz_target!(|bytes: &[u8]| mcp_fuzz::configuration(Profile::AcpV2, bytes));
