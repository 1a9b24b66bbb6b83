//! Clients and a server for benchmarks.
//!
//! Every client is a program with the same command line: `CLIENT --scenario S --transport T … -- SERVER ARGV…` repeats
//! one operation and prints one line of JSON. [`scenario`] defines the scenarios; a client only implements connect,
//! call and list.
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

pub mod bench_server;
pub mod gateway_client;
pub mod meter;
pub mod minimal_client;
pub mod options;
pub mod scenario;

/// The reason why a measurement failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The echoed text: 103 bytes.
pub const TEXT: &str = "The quick brown fox jumps over the lazy dog. \
                        The quick brown fox jumps over the lazy dog 0123456789.";
