//! Tests of the layers gate: the tree passes, and each check finds a violation.

use super::dependencies::check_manifest;
use super::lists::{CrateRules, Lists};
use super::{check, forbidden_words, module_order, run};
use crate::tree::Tree;

#[test]
fn the_tree_has_no_violation() {
    if let Err(error) = run() {
        panic!("{error}");
    }
}

const RULES: &str = r#"
name = "a"
ours = ["below"]
others = ["bytes"]
development = ["proptest"]
under_feature = { stdio = ["nix"], http = ["url"], sse = ["url"] }
"#;

/// The lists of the tree without those of files, which a tree in memory does not have.
fn lists() -> Lists {
    let lists = Lists::read().expect("the lists are valid");
    Lists { pure_files: Vec::new(), ..lists }
}

#[track_caller]
fn check_dependencies(tables: &str, expected: &[&str]) {
    let manifest = format!("package.name = 'a'\nlints.workspace = true\n{tables}");
    let manifest = manifest.parse().expect("the row is TOML");
    let rules = toml::from_str(RULES).expect("the rules are TOML");
    assert_eq!(check_manifest(&lists(), &rules, &manifest), expected);
}

#[test]
fn a_dependency_that_is_not_listed_is_found() {
    check_dependencies("[dependencies]\nbytes.workspace = true\nbelow.workspace = true", &[]);
    check_dependencies("[dependencies]\ntokio.workspace = true", &["`tokio` is not in the list for `a`"]);
    check_dependencies(
        "[target.'cfg(unix)'.dependencies]\nabove.workspace = true",
        &["`above` is not in the list for `a`"],
    );
    check_dependencies(
        "[dependencies]\nproptest.workspace = true",
        &["`proptest` is not in the list for `a`"],
    );
    check_dependencies("[dev-dependencies]\nproptest.workspace = true\nnix.workspace = true", &[]);
    check_dependencies(
        "[dev-dependencies]\ntokio.workspace = true",
        &["`tokio` is not in the list for the crate's tests"],
    );
    check_dependencies(
        "[build-dependencies]\nbytes.workspace = true",
        &["`bytes`: no crate has a build script"],
    );
}

#[test]
fn an_own_version_is_found() {
    check_dependencies(
        "[dependencies]\nbytes = '1'",
        &["`bytes` has its own version: use the version of the workspace"],
    );
}

#[test]
fn an_optional_dependency_is_enabled_by_its_feature_only() {
    let optional = "[dependencies]\nnix = { workspace = true, optional = true }";
    check_dependencies(&format!("{optional}\n[features]\nstdio = ['dep:nix']\nx = ['nix?/signal']"), &[]);
    check_dependencies(
        "[dependencies]\nnix.workspace = true",
        &["`nix` is allowed under the feature `stdio` only: make it optional"],
    );
    check_dependencies(
        &format!("{optional}\n[features]\nhttp = ['dep:nix']"),
        &["`nix` is allowed under the feature `stdio`, but `http` enables it"],
    );
    check_dependencies(
        &format!("{optional}\n[features]\nstdio = ['dep:nix']\ndefault = ['nix/signal']"),
        &["`nix` is allowed under the feature `stdio`, but `default` enables it"],
    );
    check_dependencies(optional, &["no feature enables `nix`: `stdio` should"]);
    let optional = "[dependencies]\nurl = { workspace = true, optional = true }";
    check_dependencies(&format!("{optional}\n[features]\nhttp = ['dep:url']\nsse = ['dep:url']"), &[]);
    check_dependencies(
        &format!("{optional}\n[features]\nhttp = ['dep:url']\nstdio = ['dep:url']"),
        &["`url` is allowed under the feature `http` or `sse`, but `stdio` enables it"],
    );
}

#[test]
fn crates_depend_on_lower_layers_only() {
    let Lists { crates, .. } = lists();
    let position = |name: &str| crates.iter().position(|rules| rules.name == name);
    for rules in &crates {
        for dependency in &rules.ours {
            assert!(position(dependency).is_some(), "{dependency} has no entry");
            assert!(position(dependency) < position(&rules.name), "{dependency} is not below {}", rules.name);
        }
    }
}

/// Checks a tree of one file.
#[track_caller]
fn check_file(path: &'static str, text: &str, expected: &[&str]) {
    let mut lists = lists();
    // A crate root in memory declares no modules.
    if path.ends_with("/src/lib.rs") {
        lists.crates.iter_mut().for_each(|rules| rules.modules.clear());
    }
    let found: Vec<String> =
        check(&Tree::of(&[(path, text)]), &lists).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_crate_without_an_entry_is_found() {
    check_file(
        "crates/mcp-new/Cargo.toml",
        "[package]\nname = 'mcp-new'",
        &["crates/mcp-new/Cargo.toml: `mcp-new` has no entry in xtask/layers.toml"],
    );
    check_file(
        "crates/mcp-model/Cargo.toml",
        "[package]\nname = 'mcp-model'",
        &[
            "crates/mcp-model/Cargo.toml: the package is `mcp-model`, not `mcp-host-model`",
            "crates/mcp-model/Cargo.toml: it does not use the lints of the workspace: add `[lints] workspace = true`",
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
        check_file(path, code, &[&format!("{path}:1: `{word}` is forbidden here")]);
        check_file("crates/mcp-host/src/read.rs", code, &[]);
        check_file(path, &format!("#[cfg(test)]\nmod tests {{ {code} }}"), &[]);
        check_file("crates/mcp-config/tests/it/main.rs", code, &[]);
        check_file(path, &format!("/* {code} */"), &[]);
    }
    check_file(path, "fn f() { print(\"tokio\"); asynchronous() } use std::{io::{env, fs}};", &[]);
}

#[test]
fn impure_words_are_found_in_pure_files() {
    let life = "//! Why.\nuse tokio::time::Instant;\nuse tokio::time::sleep;";
    let tree = Tree::of(&[("crates/mcp-host/src/life.rs", life)]);
    let pure = ["crates/mcp-host/src/life.rs", "crates/mcp-host/src/missing.rs"];
    let lists = Lists { pure_files: pure.map(str::to_owned).to_vec(), ..lists() };
    let found: Vec<String> =
        forbidden_words::check(&tree.rust_files, &lists).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "crates/mcp-host/src/missing.rs: it is in the list of pure files and does not exist",
            "crates/mcp-host/src/life.rs:3: `tokio` is forbidden here",
        ]
    );
}

#[test]
fn rmcp_is_used_in_listed_places_only() {
    let code = "use rmcp::ServiceExt;";
    check_file("crates/mcp-host/src/a.rs", code, &["crates/mcp-host/src/a.rs:1: `rmcp::` is forbidden here"]);
    check_file("crates/mcp-demo/src/a.rs", code, &[]);
    check_file("crates/mcp-rmcp/src/a.rs", code, &[]);
    check_file("tests/it/peer.rs", code, &[]);
}

#[test]
fn error_numbers_are_constants() {
    let path = "crates/mcp-host/src/a.rs";
    for (number, code) in [
        ("-32602", "const A: i64 = -32602;"),
        ("-32602", "const A: i64 = -32_602_i64;"),
        ("-32000", r#"const A: &str = r"{'code':-32000}";"#),
    ] {
        let what = format!("{path}:1: {number} has a name in code.rs of mcp-model or mcp-acp: use it");
        check_file(path, code, &[&what]);
        check_file("crates/mcp-model/src/code.rs", code, &[]);
        check_file("crates/mcp-acp/src/code.rs", code, &[]);
        check_file(path, &format!("/// {code}\n#[cfg(test)] mod tests {{ {code} }}"), &[]);
    }
    check_file(path, "const A: i64 = -32; const B: i64 = -320000; const C: &str = \"a-32602\";", &[]);
}

#[test]
fn unsafe_is_allowed_in_one_file_for_each_system() {
    let elsewhere = "`unsafe` is allowed only in the files that control child processes";
    let spawn = "#![expect(unsafe_code, reason = \"why\")]\nfn g() { unsafe { f() } }";
    let linux = "crates/mcp-transport/src/stdio/system/unix/linux_launcher.rs";
    let windows = "crates/mcp-transport/src/stdio/system/windows/console.rs";
    check_file(linux, spawn, &[]);
    check_file(windows, spawn, &[]);
    let path = "crates/mcp-transport/src/stdio/spawn.rs";
    check_file(path, spawn, &[&format!("{path}: only {linux} and {windows} may expect `unsafe`")]);
    let path = "crates/mcp-host/src/a.rs";
    check_file(path, "fn f() { unsafe { g() } }", &[&format!("{path}:1: {elsewhere}")]);
    check_file(
        path,
        "#[cfg(test)] mod t { fn f() { unsafe { g() } } }",
        &[&format!("{path}:1: {elsewhere}")],
    );
    check_file(path, "// unsafe\nconst A: &str = \"unsafe\";", &[]);
    check_file(
        path,
        "#[expect(unsafe_code, reason = \"why\")]\nfn f() {}",
        &[&format!("{path}:1: the lint `unsafe_code` may not be relaxed here")],
    );
}

#[test]
fn code_for_one_system_is_found() {
    let message = "code for one system is allowed only in the files of `system_code`";
    let path = "crates/mcp-host/src/a.rs";
    for code in [
        "#[cfg(unix)]\nfn f() {}",
        "#[cfg(all(feature = \"x\", target_os = \"linux\"))]\nfn f() {}",
        "fn f() -> bool { cfg!(windows) }",
        "#[cfg_attr(not(unix), expect(dead_code, reason = \"why\"))]\nfn f() {}",
        "use std::os::fd::OwnedFd;",
        "fn f() { nix::unistd::getpid() }",
        "use tokio::signal::unix;",
    ] {
        check_file(path, code, &[&format!("{path}:1: {message}")]);
        check_file(path, &format!("#[cfg(test)] mod tests {{ {code} }}"), &[]);
        check_file("crates/mcp-host/src/fs/system/unix.rs", code, &[]);
    }
    for code in ["#[cfg(feature = \"unix\")]\nfn f() {}", "#[cfg(test)]\nmod unix {}", "mod windows {}"] {
        check_file(path, code, &[]);
    }
}

#[test]
fn error_texts_are_not_searched() {
    let path = "crates/mcp-host/src/a.rs";
    let found = format!("{path}:1: the text of an error is searched: decide by its type");
    for code in [
        r#"fn f() -> bool { error.message.contains("TLS") }"#,
        r#"fn f() -> bool { message.as_str().starts_with("TLS") }"#,
        r#"fn f() -> bool { self.error.to_string().to_lowercase().contains("tls") }"#,
        r#"fn f() { let _ = error.to_string() .split_once(": "); }"#,
    ] {
        check_file(path, code, &[&found]);
        check_file("crates/mcp-registry/src/validate/mod.rs", code, &[]);
        check_file(path, &format!("#[cfg(test)] mod tests {{ {code} }}"), &[]);
    }
    for code in [
        r#"fn f() -> bool { message.starts_with(b"\xEF") }"#,
        r#"fn f() -> bool { messages.contains(&one) || name.contains("error") }"#,
        r#"fn f() -> bool { name.to_string().contains('x') }"#,
    ] {
        check_file(path, code, &[]);
    }
}

#[test]
fn error_texts_are_not_compared() {
    let path = "crates/mcp-host/src/a.rs";
    let found = format!("{path}:1: the text of an error is compared: decide by its type");
    for code in [
        "fn f() -> bool { problem.message == error.to_string() }",
        "fn f() -> bool { self.error.to_string() != text }",
        "fn f() -> bool { (a == failure.to_string()) && b }",
    ] {
        check_file(path, code, &[&found]);
        check_file(path, &format!("#[cfg(test)] mod tests {{ {code} }}"), &[]);
    }
    for code in [
        "fn f() -> bool { status == 404 && !error.to_string().is_empty() }",
        "fn f() -> bool { text == path.to_string() || task.message != last_message }",
    ] {
        check_file(path, code, &[]);
    }
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

/// Lists of one crate with two modules.
fn two_modules() -> Lists {
    let modules = vec!["low".to_owned(), "high".to_owned()];
    let rules = CrateRules { name: "mcp-a".to_owned(), modules, ..CrateRules::default() };
    Lists { crates: vec![rules], ..Lists::default() }
}

#[track_caller]
fn check_order(files: &[(&str, &str)], expected: &[&str]) {
    let mut tree = vec![("crates/mcp-a/src/lib.rs", "mod high; mod low; #[cfg(test)] mod fixture;")];
    tree.extend(files);
    let tree = Tree::of(&tree);
    let found: Vec<String> =
        module_order::check(&tree.rust_files, &two_modules()).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_module_imports_modules_before_it() {
    let upward = "imports `high`, which xtask/layers.toml lists after it";
    check_order(&[("crates/mcp-a/src/high.rs", "use crate::low::A; use crate::high::B;")], &[]);
    for text in [
        "use crate::high::A;",
        "fn f() { assert!(crate::high::g()) }",
        "use crate::{low::B, high::A};",
        "use super::high::A;",
        "mod inner { use super::super::high::A; }",
    ] {
        let message = format!("crates/mcp-a/src/low.rs:1: `low` {upward}");
        check_order(&[("crates/mcp-a/src/low.rs", text)], &[&message]);
        check_order(&[("crates/mcp-a/src/low.rs", &format!("#[cfg(test)] mod tests {{ {text} }}"))], &[]);
        check_order(&[("crates/mcp-a/src/low/tests.rs", text)], &[]);
    }
    let message = format!("crates/mcp-a/src/low/part.rs:1: `low` {upward}");
    check_order(
        &[("crates/mcp-a/src/low/part.rs", "use super::super::high::A; use super::high::B;")],
        &[&message],
    );
}

#[test]
fn an_import_through_the_crate_root_is_found() {
    check_order(
        &[("crates/mcp-a/src/low.rs", "use crate::Name;")],
        &["crates/mcp-a/src/low.rs:1: `Name` is imported through the crate root: import it from its module"],
    );
}

#[test]
fn the_table_of_modules_is_complete() {
    let tree =
        Tree::of(&[("crates/mcp-a/src/lib.rs", "mod low; mod new;"), ("crates/mcp-b/src/main.rs", "")]);
    let found: Vec<String> =
        module_order::check(&tree.rust_files, &two_modules()).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "crates/mcp-a/src/lib.rs: `new` is missing in xtask/layers.toml",
            "crates/mcp-a/src/lib.rs: `high` of xtask/layers.toml does not exist",
            "crates/mcp-b/src/main.rs: `mcp-b` has no entry in xtask/layers.toml",
        ]
    );
}

#[test]
fn a_crate_has_few_entries() {
    let names: Vec<String> = (0..13).map(|number| format!("crates/mcp-a/src/m{number}/mod.rs")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    files.push(("crates/mcp-a/src/tests.rs", ""));
    check_order(&files, &["crates/mcp-a/src/: 14 files and folders, more than 13"]);
    files.remove(0);
    check_order(&files, &[]);
}

#[test]
fn a_development_dependency_in_a_cycle_has_no_version() {
    let lists = lists();
    let rules = lists.crate_rules("mcp-transport").expect("it is listed");
    let check = |dependency: &str, expected: &[&str]| {
        let manifest = format!(
            "package.name = 'mcp-host-transport'\nlints.workspace = true\n[dev-dependencies]\nmcp-rmcp = {dependency}"
        );
        let manifest = manifest.parse().expect("the manifest is TOML");
        assert_eq!(check_manifest(&lists, rules, &manifest), expected);
    };
    let violation = "`mcp-rmcp` cannot be in the package: use its path without a version";
    check("{ path = '../mcp-rmcp' }", &[]);
    check("{ path = '../mcp-rmcp', version = '1' }", &[violation]);
    check("{ workspace = true }", &[violation]);
}

/// The limits of builds that need few crates: a transport over stdio has at most as many as the client of the
/// official SDK.
#[test]
fn small_builds_pull_few_crates() {
    check_crate_count("mcp-host-transport", "stdio", 63);
    check_crate_count("mcp-host-acp", "", 40);
    check_crate_count("mcp-host-registry", "", 60);
}

/// Checks the number of the crates that a package depends on with these features only.
#[track_caller]
fn check_crate_count(package: &str, features: &str, limit: usize) {
    let mut tree = crate::cargo::cargo();
    tree.args(["tree", "--offline", "-p", package, "--no-default-features", "--features", features])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let output = tree.env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION").output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    // `NAME VERSION`, followed by a path, `(proc-macro)` or a mark for a repetition. The first is the package itself.
    let mut crates: std::collections::BTreeSet<&str> =
        printed.lines().filter_map(|line| line.split(" (").next().filter(|it| !it.is_empty())).collect();
    crates.retain(|it| it.split(' ').next() != Some(package));
    assert!(crates.len() <= limit, "{package} depends on {} crates: {crates:#?}", crates.len());
}
