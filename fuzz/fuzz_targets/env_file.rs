//! Any bytes, read as a `.env` file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = mcp_config::parse_env_file(text);
    }
});
