//! `explain`: why a name is shown or hidden, without starting a server.

use crate::support::{DEMO, Workspace};

const FILTERED: &str = "\
version: 1
servers:
  files:
    transport: stdio
    command: /no/such/program
    tools:
      whitelist: [read_*]
      blacklist: ['*']
    transform:
      - prefix: fs_
";

#[test]
fn dm_036_dm_042_rules_are_explained_in_order() {
    let workspace = Workspace::dominds(FILTERED);
    let run = workspace.run(&[
        "explain",
        ".",
        "--tool",
        "read_file",
        "--tool",
        "wipe",
        "--tool",
        "a.b",
        "--prompt",
        "a.b",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.out, @r"
    tool `read_file` of server `files` is shown as `fs_read_file`
      original   it matches ^[a-zA-Z0-9_-]{1,64}$ → `read_file`
      filter     whitelist `read_*` overrides blacklist `*` → `read_file`
      transform  `fs_` is put before it → `fs_read_file`
      naming     it matches ^[a-zA-Z0-9_-]{1,64}$ → `fs_read_file`

    tool `wipe` of server `files` is not shown: blacklisted
      original   it matches ^[a-zA-Z0-9_-]{1,64}$ → `wipe`
      filter     blacklist `*` → hidden

    tool `a.b` of server `files` is not shown: invalid_name
      original   it must match ^[a-zA-Z0-9_-]{1,64}$ → hidden

    prompt `a.b` of server `files` is shown as `fs_a_b`
      filter     no filter → `a.b`
      transform  `fs_` is put before it → `fs_a.b`
      naming     what is not of [A-Za-z0-9_-] becomes one `_`, none at its ends → `fs_a_b`
    ");
}

#[test]
fn json_document_has_its_members() {
    let run = Workspace::dominds(FILTERED).run(&[
        "explain", ".", "--server", "files", "--tool", "read_a", "--tool", "read_a", "--tool", "wipe",
        "--format", "json",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let document = run.json();
    let decision = |at: usize| {
        let it = &document["decisions"][at];
        format!("{} {} {} {}", it["original"], it["exposed"], it["verdict"], it["rule"])
    };
    assert_eq!(decision(0), r#""read_a" "fs_read_a" "exposed" "whitelist `read_*` overrides blacklist `*`""#);
    let taken =
        r#""read_a" null "collision" "the name `fs_read_a` is taken by tool `read_a` of server `files`""#;
    assert_eq!(decision(1), taken);
    assert_eq!(decision(2), r#""wipe" null "blacklisted" "blacklist `*`""#);
    assert_eq!(document["decisions"][2]["stages"][1]["rule"], "filter");
}

#[test]
fn explain_errors_are_reported() {
    let workspace = Workspace::dominds(&format!("{FILTERED}  broken:\n    transport: stdio\n"));
    let check = |arguments: &[&str], code: i32, want: &str| {
        let run = workspace.run(arguments);
        assert!(run.code == Some(code) && run.err.contains(want), "{run:?}");
    };
    check(&["explain", ".", "--tool", "a"], 2, "select a server with `--server`: files, broken");
    check(
        &["explain", ".", "--server", "c", "--tool", "a"],
        2,
        "there is no server `c`; the servers are: files, broken",
    );
    check(
        &["explain", ".", "--server", "broken", "--tool", "a"],
        1,
        "the entry of server `broken` is invalid",
    );
    check(&["explain", "."], 2, "--tool <NAME>");
    check(&["explain", "nowhere.yaml", "--tool", "a"], 1, "nowhere.yaml");
}

#[test]
fn started_server_shows_which_names_do_not_exist() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["explain", ".", "--start", "--tool", "ecko", "--tool", "echo"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.out
            .starts_with("tool `ecko` of server `demo` does not exist; did you mean `echo`?\n\ntool `echo` "),
        "{run:?}"
    );
    let run = workspace.run(&["explain", ".", "--start", "--prompt", "no", "--format", "json"]);
    assert_eq!((run.code, &run.json()["decisions"][0]["offered"]), (Some(1), &false.into()));
    let run = workspace.run(&["explain", ".", "--tool", "ecko", "--format", "json"]);
    assert_eq!((run.code, &run.json()["decisions"][0]["offered"]), (Some(0), &serde_json::Value::Null));
}

#[test]
fn name_is_searched_on_all_started_servers() {
    let demo = DEMO.split_once("servers:\n").expect("it has servers").1;
    let workspace = Workspace::dominds(&format!("{DEMO}{}", demo.replacen("demo:", "second:", 1)));
    let run = workspace.run(&["explain", ".", "--start", "--tool", "nope"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(
        run.out,
        "tool `nope` of server `demo` does not exist\n\ntool `nope` of server `second` does not exist\n"
    );
    let run = workspace.run(&["explain", ".", "--start", "--tool", "echo", "--format", "json"]);
    let decisions = run.json()["decisions"].as_array().map(Vec::len);
    assert_eq!((run.code, decisions), (Some(0), Some(2)), "{run:?}");
}
