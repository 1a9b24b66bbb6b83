//! Tests of the features gate: the tests of the tree name existing rules, and each notation is understood.

use super::table::{self, RuleId};
use super::{check, mention, run};
use crate::tree::Tree;

#[test]
fn tests_of_the_tree_name_existing_rules() {
    if let Err(error) = run() {
        panic!("{error}");
    }
}

const TABLE: &str = "\
| id | rule | where |
|---|---|---|
| HD-040 | a rule | mcp-config |
| HD-041 | a rule | mcp-config |
| HD-044 | a rule | mcp-config |
| HD-FR010 | a rule | mcp-config |
| HD-SC1 | a rule | mcp-config |
| HDX-08 | a rule | mcp-config |
| DM-041 | a rule | mcp-registry |
| DM-042 | a rule | mcp-registry |
| X-14 | a rule | mcp-config |
";

#[track_caller]
fn check_line(line: &str, expected: &str) {
    let (known, violations) = table::read_table(TABLE);
    assert!(violations.is_empty(), "{violations:?}");
    let mut found: Vec<String> = mention::find_ids(line, &known).iter().map(RuleId::to_string).collect();
    found.sort();
    assert_eq!(found.join(" "), expected, "{line}");
}

#[test]
fn ids_are_found() {
    check_line("// HD-044: by host", "HD-044");
    check_line("fn hd_044_by_host() {", "HD-044");
    check_line("fn proves_hd_fr010() {", "HD-FR010");
    check_line("fn hd_fr_010_names_it() {", "HD-FR010");
    check_line("// HD-FR010, HD-SC1 and HDX-08.", "HD-FR010 HD-SC1 HDX-08");
    check_line("mod hdx_08 {", "HDX-08");
    check_line("fn hd_sc1() {", "HD-SC1");
    check_line("check(\"X-14\")", "X-14");
    check_line("// HD-999", "HD-999");
}

#[test]
fn ranges_and_lists_are_found() {
    check_line("// HD-040 to HD-044", "HD-040 HD-041 HD-044");
    check_line("// HD-040..044", "HD-040 HD-041 HD-044");
    check_line("fn hd_040_to_hd_044_urls() {", "HD-040 HD-041 HD-044");
    check_line("fn hd_040_to_044_urls() {", "HD-040 HD-041 HD-044");
    check_line("// DM-041/042", "DM-041 DM-042");
    check_line("// DM-041, 042, DM-999", "DM-041 DM-042 DM-999");
    check_line("fn dm_041_042_both() {", "DM-041 DM-042");
    check_line("fn dm_041_and_042_both() {", "DM-041 DM-042");
    check_line("// HD-044 to HD-040", "HD-040 HD-044");
}

#[test]
fn similar_text_is_not_an_id() {
    for line in ["let x_14 = 1;", "x-14", "AHD-044", "HD-0441", "HD-44", "sk-12", "acp-v1", "UTF-8", "HD-"] {
        check_line(line, "");
    }
    check_line("fn hdx_08_16_bytes() {", "HDX-08");
}

#[track_caller]
fn check_tree(files: &[(&str, &str)], report_has: &str, expected: &[&str]) {
    let (report, violations) = check(&Tree::of(files)).expect("the table is there");
    let found: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
    assert!(report.contains(report_has), "{report}");
}

#[test]
fn only_tests_count() {
    let table = ("docs/rules.md", TABLE);
    let proven = "HD: 1 of 3 proven by tests\n  proven: 044\n  open: 040 041\n";
    check_tree(&[table, ("crates/a/tests/it/main.rs", "// HD-044")], proven, &[]);
    check_tree(&[table, ("crates/a/src/b/tests.rs", "fn hd_044() {}")], proven, &[]);
    check_tree(&[table, ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n// HD-044\n}")], proven, &[]);
    check_tree(&[table, ("crates/a/src/b.rs", "// HD-044")], "HD: 0 of 3 proven by tests", &[]);
}

#[test]
fn an_unknown_rule_is_found() {
    check_tree(
        &[
            ("docs/rules.md", TABLE),
            ("crates/a/src/b.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n// HD-999\n}"),
        ],
        "all: 0 of 9",
        &["crates/a/src/b.rs:4: HD-999 is not in docs/rules.md"],
    );
    assert!(check(&Tree::of(&[])).is_err(), "a missing table is an error");
}

#[test]
fn front_page_of_a_library_with_ids_names_the_table() {
    let file = ("crates/a/src/b.rs", "/// A rule (HD-044).\nfn f() {}");
    let table = ("docs/rules.md", TABLE);
    let want = "crates/a/src/lib.rs:1: its documentation has ids of rules: say that docs/rules.md lists them";
    check_tree(&[table, file, ("crates/a/src/lib.rs", "//! A crate.")], "", &[want]);
    check_tree(&[table, file, ("crates/a/src/lib.rs", "//! Ids are in `docs/rules.md`.")], "", &[]);
    check_tree(&[table, file, ("crates/b/src/lib.rs", "//! A crate.")], "", &[]);
    check_tree(&[table, ("crates/a/src/lib.rs", "// HD-044\n")], "", &[]);
}

#[test]
fn violations_of_the_table_are_found() {
    let bad = "| id | rule | where |\n|---|---|---|\n| HD-1 | a | b |\n| HD-001 | a | b |\n| HD-001 | a | b |\n\
        | HD-002 | a |  |\n| HD-003 | a |\n";
    check_tree(
        &[("docs/rules.md", bad)],
        "all: 0 of 1",
        &[
            "docs/rules.md:3: `HD-1` is not a rule id",
            "docs/rules.md:5: HD-001 occurs twice",
            "docs/rules.md:6: HD-002 needs three cells: id, rule, where",
            "docs/rules.md:7: HD-003 needs three cells: id, rule, where",
        ],
    );
}
