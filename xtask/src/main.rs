//! The project's own commands: `cargo xtask <command>`.
//!
//! Each gate is a pure function over the files of the tree and also a test, so `cargo test` finds every violation.
//! There is no argument parser, because it would be the largest dependency of a tool that is built first.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

mod cargo;
mod ci;
mod cross;
mod dist;
mod error;
mod gates;
mod generated_files;
mod measurements;
mod package;
mod schema_releases;
mod suites;
mod tree;

use std::env;
use std::process::ExitCode;

use error::Error;
use gates::{api, deny, layers, rules, tidy};
use generated_files::OutputMode;
use measurements::{bench, counts, growth};
use suites::{conformance, faults, fresh, fuzz, gateway_clients, macos, soak, test_run, windows};

const USAGE: &str = "\
Usage: cargo xtask <command>

  test [-- <cargo test arguments>]  install test packages and run all tests; without arguments also the conformance \
  suite
  conformance [client|server]       run the official conformance suite against the client and the gateway
  faults                            run the whole fault matrix: every fault on every transport at every API
  bench [ROUNDS]                    compare our clients with a hand-written one and rmcp; writes docs/performance.md
  growth [SECONDS] [ROW…]           measure how costs grow with servers, tools and clients, and SECONDS of mixed load \
  (600 by default); writes docs/performance.md
  counts [--renew]                  compare instructions and allocations of hot paths with the baseline, or renew it
  ci                                run every gate that is not a test: format, lints, docs, builds, packages, licences
  soak [SECONDS [SEED]]             run the soak test, 3600 s by default, in full size from 600 s
  users [REQUESTS]                  run the isolation test of two users, 10000 requests by default
  reloads [COUNT]                   run the reload test with calls of up to 30 s, 50 reloads by default
  schema [--check]                  write schemas/<dialect>.schema.json, or fail if one is stale or incompatible
  schema --release                  freeze the schemas as the release of this version
  docs [--check]                    write the generated pages, or fail if one is stale
  package [--test]                  package the published crates, and check the packages with the oldest dependencies, \
  or run their tests
  dist [--profile NAME] [TARGET…]   build the archives and packages of the program in target/packages, and try each
  api [--check]                     write the public items of each library to api/, or fail if a file is stale
  semver                            compare the libraries with the last release tag, by cargo-semver-checks
  deny                              check the dependency tree with deny.toml
  layers                            check dependencies, module order, forbidden words, error numbers, unsafe
  tidy                              check file heads, lengths, links, plain language, unfinished code, undeclared files
  fuzz [--seconds N] [target…]      run the fuzz targets, 10 s each; needs nightly and cargo-fuzz
  fresh                             try the newest release of every dependency in target/fresh, and report
  windows [--wine]                  check for Windows; build for it and run the program under wine
  macos                             check for macOS
  features                          list the rules of docs/rules.md with and without a test
";

fn main() -> ExitCode {
    if let Some(code) = api::run_as_rustdoc() {
        return ExitCode::from(code);
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test", "--", rest @ ..] => test_run::run(rest),
        ["test"] => test_run::run(&[]),
        ["conformance"] => conformance::run(None),
        ["conformance", "client"] => conformance::run(Some(conformance::Side::Client)),
        ["conformance", "server"] => conformance::run(Some(conformance::Side::Server)),
        ["ci"] => ci::run(),
        ["bench"] => bench::run(bench::DEFAULT_ROUNDS),
        ["bench", rounds] if rounds.parse::<usize>().is_ok_and(|rounds| rounds > 0) => {
            bench::run(rounds.parse().expect("the guard has parsed it"))
        }
        ["growth", rest @ ..] => growth::run(rest),
        ["counts"] => counts::run(counts::BaselineMode::Compare),
        ["counts", "--renew"] => counts::run(counts::BaselineMode::Renew),
        ["schema"] => generated_files::write_or_check_schemas(OutputMode::Write),
        ["schema", "--check"] => generated_files::check_schemas(),
        ["schema", "--release"] => generated_files::write_or_check_schemas(OutputMode::Check)
            .and_then(|()| generated_files::store_schema_releases()),
        ["faults"] => faults::run(),
        ["soak", rest @ ..] => soak::run(rest),
        ["users"] => gateway_clients::run(gateway_clients::USERS, None),
        ["users", requests] => gateway_clients::run(gateway_clients::USERS, Some(requests)),
        ["reloads"] => gateway_clients::run(gateway_clients::RELOADS, None),
        ["reloads", count] => gateway_clients::run(gateway_clients::RELOADS, Some(count)),
        ["docs"] => generated_files::write_or_check_pages(OutputMode::Write),
        ["docs", "--check"] => generated_files::write_or_check_pages(OutputMode::Check),
        ["dist", rest @ ..] => dist::run(rest),
        ["package"] => package::run(package::Extent::Check),
        ["package", "--test"] => package::run(package::Extent::Test),
        ["api"] => api::run(OutputMode::Write),
        ["api", "--check"] => api::run(OutputMode::Check),
        ["semver"] => api::check_semver(),
        ["deny"] => deny::run(),
        ["layers"] => layers::run(),
        ["tidy"] => tidy::run(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["windows", rest @ ..] => windows::run(rest),
        ["macos"] => macos::run(),
        ["fresh"] => fresh::run(),
        ["features"] => rules::run().map(|report| println!("{report}")),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Exit(code)) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
