//! The project's own commands: `cargo xtask <command>`.
//!
//! The rules of the house are commands here, so that breaking one fails instead of being remembered. Each gate is a
//! pure function over the texts of the tree, and a test besides: `cargo test` alone finds a trespass. There is no
//! argument parser: it would be the largest dependency of a tool that everybody builds first.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks by printing")]

mod bench;
mod cargo;
mod ci;
mod conformance;
mod counts;
mod deny;
mod evolution;
mod failure;
mod faults;
mod floors;
mod fuzz;
mod generated;
mod page;
mod rules;
mod rust;
mod soak;
mod test_run;
mod tidy;
mod tree;

use std::env;
use std::process::ExitCode;

use failure::Failure;
use generated::Mode;

const USAGE: &str = "\
Usage: cargo xtask <command>

  test [-- <cargo test arguments>]  install what the tests need, then run all tests; without arguments then conformance, too
  conformance [client|server]       the official conformance suite, against the client and the gateway
  faults                            the fault matrix: every fault on every wire, at every face
  bench [ROUNDS]                    our clients beside the floor and the official SDK; writes docs/performance.md
  counts [--renew]                  instructions and allocations of the hot paths, against what they were; or writes them down
  ci                                every gate that is no test: format, lints, docs, builds, packages, licences, counts, house rules
  soak [SECONDS [SEED]]             the soak: an hour unless told otherwise, in full from ten minutes on
  schema [--check]                  write schemas/<dialect>.schema.json, or fail if they are stale or break a release
  schema --release                  freeze the schemas as the release of this version
  docs [--check]                    write the pages that are made from the code, or fail if one is stale
  package                           packs the crates that are published, and builds what was packed
  deny                              what the tree of dependencies may hold, by deny.toml
  floors                            dependencies, forbidden words, error numbers, unsafe
  tidy                              heads, lengths, unfinished code, forgotten files, paths of one machine
  fuzz [--seconds N] [target…]      the fuzz targets in turn, 10 s each; needs nightly and cargo-fuzz
  features                          which rules of docs/rules.md some test proves
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test", "--", rest @ ..] => test_run::run(rest),
        ["test"] => test_run::run(&[]),
        ["conformance"] => conformance::both(),
        ["conformance", "client"] => conformance::client(),
        ["conformance", "server"] => conformance::server(),
        ["ci"] => ci::run(),
        ["bench"] => bench::run(bench::ROUNDS),
        ["bench", rounds] if rounds.parse::<usize>().is_ok_and(|it| it > 0) => {
            bench::run(rounds.parse().expect("that was looked at"))
        }
        ["counts"] => counts::run(counts::Mode::Compare),
        ["counts", "--renew"] => counts::run(counts::Mode::Renew),
        ["schema"] => generated::schemas(Mode::Write),
        ["schema", "--check"] => generated::schemas(Mode::Check).and_then(|()| generated::evolution()),
        ["schema", "--release"] => generated::schemas(Mode::Check).and_then(|()| generated::release()),
        ["faults"] => faults::run(),
        ["soak", rest @ ..] => soak::run(rest),
        ["docs"] => generated::pages(Mode::Write),
        ["docs", "--check"] => generated::pages(Mode::Check),
        ["package"] => ci::pack(),
        ["deny"] => deny::run(),
        ["floors"] => floors::run(),
        ["tidy"] => tidy::run(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
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
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Exit(code)) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
