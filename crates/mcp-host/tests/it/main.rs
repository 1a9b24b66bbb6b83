//! Tests of a host with in-memory servers, on a paused Tokio clock that advances only when all tasks are idle.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod call_rules;
mod callers;
mod calls;
mod concurrency;
mod config_files;
mod config_watch;
mod demo_server;
mod example;
mod fixture;
mod lease_lifetime;
mod lease_oracle;
mod leases;
mod list_reads;
#[cfg(feature = "otel")]
mod otel;
mod pinned_generations;
mod prompts_and_resources;
mod provider_failures;
mod reload;
mod results;
mod scripted_server;
mod shutdown;
mod startup;
mod supervision;
mod supervisor_panic;
mod telemetry;
