//! The tree keeps its floors, and each check finds a planted trespass.

use super::dependencies::check_manifest;
use super::lists::{FLOORS, Floor};
use super::{check, run, words};
use crate::rust::RustFile;
use crate::tree::planted;

#[test]
fn the_tree_keeps_its_floors() {
    if let Err(failure) = run() {
        panic!("{failure}");
    }
}

const FLOOR: Floor = Floor {
    name: "a",
    ours: &["below"],
    others: &["bytes"],
    under_feature: &[("stdio", &["nix"]), ("http", &["url"]), ("sse", &["url"])],
    development: &["proptest"],
};

#[track_caller]
fn check_dependencies(tables: &str, expected: &[&str]) {
    let manifest = format!("package.name = 'a'\nlints.workspace = true\n{tables}");
    let manifest = manifest.parse().expect("the row is TOML");
    assert_eq!(check_manifest(&FLOOR, &manifest), expected);
}

#[test]
fn a_dependency_outside_the_list_is_found() {
    check_dependencies("[dependencies]\nbytes.workspace = true\nbelow.workspace = true", &[]);
    check_dependencies(
        "[dependencies]\ntokio.workspace = true",
        &["`tokio` is not in the list of what `a` may know"],
    );
    check_dependencies(
        "[target.'cfg(unix)'.dependencies]\nabove.workspace = true",
        &["`above` is not in the list of what `a` may know"],
    );
    check_dependencies(
        "[dependencies]\nproptest.workspace = true",
        &["`proptest` is not in the list of what `a` may know"],
    );
    check_dependencies("[dev-dependencies]\nproptest.workspace = true\nnix.workspace = true", &[]);
    check_dependencies(
        "[dev-dependencies]\ntokio.workspace = true",
        &["`tokio` is not in the list of what its tests may use"],
    );
    check_dependencies(
        "[build-dependencies]\nbytes.workspace = true",
        &["`bytes`: no crate has a build script"],
    );
}

#[test]
fn a_version_of_its_own_is_found() {
    check_dependencies(
        "[dependencies]\nbytes = '1'",
        &["`bytes` has a version of its own: take it from the workspace"],
    );
}

#[test]
fn a_gated_dependency_stays_behind_its_feature() {
    let optional = "[dependencies]\nnix = { workspace = true, optional = true }";
    check_dependencies(&format!("{optional}\n[features]\nstdio = ['dep:nix']\nx = ['nix?/signal']"), &[]);
    check_dependencies(
        "[dependencies]\nnix.workspace = true",
        &["`nix` is allowed under the feature `stdio` only: make it optional"],
    );
    check_dependencies(
        &format!("{optional}\n[features]\nhttp = ['dep:nix']"),
        &["`nix` belongs to the feature `stdio`, and `http` switches it on"],
    );
    check_dependencies(
        &format!("{optional}\n[features]\nstdio = ['dep:nix']\ndefault = ['nix/signal']"),
        &["`nix` belongs to the feature `stdio`, and `default` switches it on"],
    );
    check_dependencies(optional, &["`nix` is switched on by no feature: `stdio` should"]);
    let optional = "[dependencies]\nurl = { workspace = true, optional = true }";
    check_dependencies(&format!("{optional}\n[features]\nhttp = ['dep:url']\nsse = ['dep:url']"), &[]);
    check_dependencies(
        &format!("{optional}\n[features]\nhttp = ['dep:url']\nstdio = ['dep:url']"),
        &["`url` belongs to the feature `http` or `sse`, and `stdio` switches it on"],
    );
}

#[test]
fn a_floor_lists_only_what_is_below() {
    let place = |name: &str| FLOORS.iter().position(|it| it.name == name);
    for floor in FLOORS {
        for below in floor.ours {
            assert!(place(below) < place(floor.name), "{} is not below {}", below, floor.name);
            assert!(place(below).is_some(), "{below} has no floor");
        }
    }
}

/// Plants one file into an otherwise clean tree.
#[track_caller]
fn check_file(path: &str, text: &str, expected: &[&str]) {
    let found: Vec<String> = check(&planted(&[(path, text)]), &[]).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_crate_without_a_floor_is_found() {
    check_file(
        "crates/mcp-new/Cargo.toml",
        "[package]\nname = 'mcp-new'",
        &["crates/mcp-new/Cargo.toml: `mcp-new` has no floor: give it a list in xtask/src/floors/lists.rs"],
    );
    check_file(
        "crates/mcp-model/Cargo.toml",
        "[package]\nname = 'mcp-noun'",
        &[
            "crates/mcp-model/Cargo.toml: the folder is `mcp-model`, the package is `mcp-noun`",
            "crates/mcp-model/Cargo.toml: it does not take the workspace's lints: add `[lints] workspace = true`",
        ],
    );
    check_file("fixtures/x/Cargo.toml", "[dependencies]\nx = '1'", &[]);
}

#[test]
fn impure_words_are_found_in_pure_crates() {
    let path = "crates/mcp-config/src/read.rs";
    for (word, code) in [
        ("tokio", "use tokio::sync;"),
        ("async", "pub async fn f() {}"),
        ("std::fs", "fn f() { std::fs::read(p) }"),
        ("std::env", "fn f() { std::env::var(p) }"),
        ("std::fs", "use std::{fmt, fs, io};"),
        ("std::env", "use std::{\n    collections::{BTreeMap, BTreeSet},\n    env::var,\n};"),
        ("::now(", "fn f() { Instant::now() }"),
    ] {
        check_file(path, code, &[&format!("{path}:1: `{word}` may not stand here")]);
        check_file("crates/mcp-host/src/read.rs", code, &[]);
        check_file(path, &format!("#[cfg(test)]\nmod tests {{ {code} }}"), &[]);
        check_file("crates/mcp-config/tests/it/main.rs", code, &[]);
        check_file(path, &format!("/* {code} */"), &[]);
    }
    check_file(path, "fn f() { say(\"tokio\"); asynchronous() } use std::{io::{env, fs}};", &[]);
}

#[test]
fn impure_words_are_found_in_pure_files() {
    let life = "//! Why.\nuse tokio::time::Instant;\nuse tokio::time::sleep;";
    let files = RustFile::all(&planted(&[("crates/mcp-host/src/life.rs", life)]));
    let pure = ["crates/mcp-host/src/life.rs", "crates/mcp-host/src/gone.rs"];
    let found: Vec<String> = words::check(&files, &pure).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "crates/mcp-host/src/gone.rs: it is in the list of pure files, and does not exist",
            "crates/mcp-host/src/life.rs:3: `tokio` may not stand here",
        ]
    );
}

#[test]
fn rmcp_stays_in_the_demo_server_and_the_bridge() {
    let code = "use rmcp::ServiceExt;";
    check_file(
        "crates/mcp-host/src/a.rs",
        code,
        &["crates/mcp-host/src/a.rs:1: `rmcp::` may not stand here"],
    );
    check_file("crates/mcp-demo/src/a.rs", code, &[]);
    check_file("crates/mcp-transport/src/rmcp_client/mod.rs", code, &[]);
    check_file("tests/it/peer.rs", code, &[]);
}

#[test]
fn numbers_have_names() {
    let path = "crates/mcp-host/src/a.rs";
    for (number, code) in [
        ("-32602", "const A: i64 = -32602;"),
        ("-32602", "const A: i64 = -32_602_i64;"),
        ("-32000", r#"const A: &str = r"{'code':-32000}";"#),
    ] {
        let what = format!("{path}:1: {number} has a name in mcp-model's or mcp-acp's code.rs: use it");
        check_file(path, code, &[&what]);
        check_file("crates/mcp-model/src/code.rs", code, &[]);
        check_file("crates/mcp-acp/src/code.rs", code, &[]);
        check_file(path, &format!("/// {code}\n#[cfg(test)] mod tests {{ {code} }}"), &[]);
    }
    check_file(path, "const A: i64 = -32; const B: i64 = -320000; const C: &str = \"a-32602\";", &[]);
}

#[test]
fn unsafe_stands_in_one_file() {
    let nowhere_else = "`unsafe` stands in the one file that starts processes, and nowhere else";
    let spawn = "#![expect(unsafe_code, reason = \"why\")]\nunsafe { f() }";
    check_file("crates/mcp-transport/src/stdio/spawn.rs", spawn, &[]);
    check_file(
        "crates/mcp-transport/src/http.rs",
        spawn,
        &[
            "crates/mcp-transport/src/http.rs: only one file of crates/mcp-transport/src/stdio/ may expect `unsafe`",
        ],
    );
    let path = "crates/mcp-host/src/a.rs";
    check_file(path, "fn f() { unsafe { g() } }", &[&format!("{path}:1: {nowhere_else}")]);
    check_file(
        path,
        "#[cfg(test)] mod t { fn f() { unsafe { g() } } }",
        &[&format!("{path}:1: {nowhere_else}")],
    );
    check_file(path, "// unsafe\nconst A: &str = \"unsafe\";", &[]);
    check_file(
        path,
        "#[expect(unsafe_code, reason = \"why\")]\nfn f() {}",
        &[&format!("{path}:1: `unsafe_code` may not be excused here")],
    );
    let both = planted(&[
        ("crates/mcp-transport/src/stdio/a.rs", spawn),
        ("crates/mcp-transport/src/stdio/b.rs", spawn),
    ]);
    assert_eq!(check(&both, &[]).len(), 1);
}

#[test]
fn every_crate_forbids_unsafe() {
    let path = "crates/mcp-host/src/lib.rs";
    check_file(path, "//! Why.\n", &[&format!("{path}: `#![forbid(unsafe_code)]` is missing")]);
    check_file(path, "//! Why.\n#![forbid(unsafe_code)]\n", &[]);
    check_file(
        path,
        "// #![forbid(unsafe_code)]\n",
        &[&format!("{path}: `#![forbid(unsafe_code)]` is missing")],
    );
    check_file("crates/mcp-transport/src/lib.rs", "//! Why.\n", &[]);
}
