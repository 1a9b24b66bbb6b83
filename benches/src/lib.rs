//! Clients and a server to measure with.
//!
//! Every client is a program of its own with the same command line: `CLIENT --scenario S --transport T … -- SERVER
//! ARGV…` does one thing many times and prints one line of JSON about it. What a scenario is stands in [`scenario`]
//! once; a client only says how it connects, calls and lists, so that all of them do the same.
//!
//! | scenario | what is done | what the line says |
//! |---|---|---|
//! | `connect` | `--n` times: connect, list the tools, close | `p50_us`, `first_ms` |
//! | `seq` | `--n` echo calls, one after the other | `p50_us`, `p99_us`, `cpu_us_per_call`, `calls_per_s` |
//! | `conc` | the same, with `--conc` callers on one connection | the same |
//! | `big` | `--n` results of `--kib` KiB, each held as a text | `p50_us`, `cpu_us_per_call`, `grown_kb`: the peak of memory above that of a connection without calls |
//! | `list` | `--n` times all tools; the first list is kept, `--rest-ms` later too | `first_ms`, `p50_us`, `rss_delta_kb` |
//! | `fleet` | `--n` servers, `--mode par` at once or `seq` one by one; all are kept | `first_tool_ms`, `all_ready_ms`, `rss_kb`, `wakeups_per_s` |
//! | `sleep` | `--conc` calls at once that each take `--ms` | `makespan_ms` |
//! | `hol` | echo calls beside `--n` results of `--kib` KiB on the same connection | `p50_us`, `p99_us`, `big_ms` |
//!
//! Every line has `hwm_kb` and `rss_kb`, the memory of the client's process.

#![forbid(unsafe_code)]

pub mod answers;
pub mod bare;
pub mod meter;
pub mod options;
pub mod scenario;

/// Why something could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is echoed: 103 bytes.
pub const TEXT: &str = "The quick brown fox jumps over the lazy dog. \
                        The quick brown fox jumps over the lazy dog 0123456789.";
