//! Compares our results with recorded results of other programs: Dominds (filters, transforms and names), HoloDeck
//! and Semantic Kernel (names).
//!
//! The recordings are not part of the project. `MCP_HOST_ORACLES` names their folder; without it these tests print
//! that they are skipped. Each intended difference is documented where it is tested.

use std::path::PathBuf;

use mcp_host_model::{ExposureFilter, ExposureRules, NameClass, NamePolicy, NameTransform, ServerId};
use mcp_host_registry::{CompiledRules, ExposureVerdict, decide};
use serde_json::Value;

/// The version of Dominds whose results are compared.
const DOMINDS: &str = "1.29.0";

/// Reads a recording. Prints a note and returns `None` if there is none.
#[expect(clippy::print_stderr, reason = "a skipped test prints why")]
fn recording(file: &str) -> Option<Value> {
    let Some(folder) = std::env::var_os("MCP_HOST_ORACLES") else {
        eprintln!("skipped: MCP_HOST_ORACLES does not name the folder of recordings");
        return None;
    };
    let path = PathBuf::from(folder).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    // Python writes numbers that JSON does not have. No row needs one, so replace them.
    let text = ["-Infinity", "Infinity", "NaN"]
        .iter()
        .fold(text, |text, word| text.replace(&format!(": {word}"), ": null"));
    Some(serde_json::from_str(&text).expect("a recording is JSON"))
}

fn rows<'a>(whole: &'a Value, key: &str) -> &'a [Value] {
    whole[key].as_array().unwrap_or_else(|| panic!("`{key}` is a list"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is text"))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().expect("a list of texts").iter().map(|it| text(it).to_owned()).collect()
}

fn filter(value: &Value) -> ExposureFilter {
    ExposureFilter { whitelist: texts(&value["whitelist"]), blacklist: texts(&value["blacklist"]) }
}

fn transforms(value: &Value) -> Vec<NameTransform> {
    let transform = |it: &Value| {
        let add = text(&it["add"]).to_owned();
        match text(&it["kind"]) {
            "prefix_add" => NameTransform::Prefix { remove: String::new(), add },
            "prefix_replace" => NameTransform::Prefix { remove: text(&it["remove"]).to_owned(), add },
            "suffix_add" => NameTransform::Suffix(add),
            other => panic!("unknown transform {other}"),
        }
    };
    value.as_array().expect("a list of transforms").iter().map(transform).collect()
}

fn server(id: &str) -> ServerId {
    ServerId::parse(id).expect("an id")
}

/// The result of a filter in Dominds' words: the pattern, `accepted` or `not_whitelisted`.
fn ruling(rules: &ExposureRules, name: &str) -> String {
    let decision = decide(&server("s"), rules, name);
    match decision.verdict {
        ExposureVerdict::Exposed => "accepted".to_owned(),
        ExposureVerdict::Blacklisted => decision.rule.into_owned(),
        other => other.as_str().to_owned(),
    }
}

#[test]
fn dm_036_patterns_match_as_dominds_does() {
    let Some(dominds) = recording("dominds.json") else { return };
    let rows = rows(&dominds, "wildcard");
    assert!(rows.len() >= 20, "only {} rows", rows.len());
    for row in rows {
        let filter =
            ExposureFilter { whitelist: vec![text(&row["pattern"]).to_owned()], blacklist: Vec::new() };
        let mut rules = ExposureRules::new(NamePolicy::Pass);
        rules.filter = filter;
        let got = CompiledRules::new(&server("s"), &rules).allows(text(&row["name"]));
        assert_eq!(Value::from(got), row[DOMINDS], "{row}");
    }
}

#[test]
fn dm_037_to_dm_041_filters_rule_as_dominds_does() {
    let Some(dominds) = recording("dominds.json") else { return };
    for row in rows(&dominds, "filters") {
        let mut rules = ExposureRules::new(NamePolicy::Reject);
        rules.filter = filter(row);
        for (name, want) in rows(row, "names").iter().zip(rows(row, DOMINDS)) {
            let want = match text(&want["kind"]) {
                "blacklisted" => format!("blacklist `{}`", text(&want["pattern"])),
                other => other.to_owned(),
            };
            assert_eq!(ruling(&rules, text(name)), want, "{name} by {:?}", rules.filter);
        }
    }
}

/// Dominds transforms an empty name, and may transform a name into an empty one. We hide such a tool under every
/// policy, because no provider and no user could name it.
#[test]
fn dm_042_to_dm_045_transforms_change_names_as_dominds_does() {
    let Some(dominds) = recording("dominds.json") else { return };
    for row in rows(&dominds, "transforms") {
        let mut rules = ExposureRules::new(NamePolicy::Pass);
        rules.transforms = transforms(&row["transform"]);
        for (name, want) in rows(row, "names").iter().zip(rows(row, DOMINDS)) {
            let (name, want) = (text(name), text(want));
            let got = decide(&server("s"), &rules, name);
            let nameless = name.is_empty() || want.is_empty();
            assert_eq!(got.exposed.as_ref().map(|it| it.as_str()), (!nameless).then_some(want), "{row}");
            assert_eq!(got.verdict == ExposureVerdict::InvalidName, nameless, "{row}");
        }
    }
}

#[test]
fn dm_047_dm_048_each_files_names_come_out_as_dominds_has_them() {
    let Some(dominds) = recording("dominds.json") else { return };
    let mut names = 0;
    for (file, versions) in dominds["files"].as_object().expect("files by name") {
        let answer = &versions[DOMINDS];
        let Some(servers) = answer["tools"].as_object() else { continue };
        for (id, tools) in servers {
            let config = &answer["config"][id];
            // A transform of the tools replaces that of the server.
            let chosen = match text(&config["tools"]["transform"]["kind"]) {
                "inherit" => &config["transform"],
                "override" => &config["tools"]["transform"]["transform"],
                other => panic!("{file}: unknown kind of transform {other}"),
            };
            let mut rules = ExposureRules::new(NamePolicy::Reject);
            (rules.filter, rules.transforms) = (filter(&config["tools"]), transforms(chosen));
            for tool in tools.as_array().expect("a list of tools") {
                let decision = decide(&server(id), &rules, text(&tool["name"]));
                let got = (decision.verdict, decision.exposed.as_ref().map(|it| it.as_str()), decision.rule);
                let want = match text(&tool["result"]) {
                    "registered" => (ExposureVerdict::Exposed, Some(text(&tool["as"]))),
                    "invalid_name" | "invalid_after_transform" => (ExposureVerdict::InvalidName, None),
                    "blacklisted" => (ExposureVerdict::Blacklisted, None),
                    "not_whitelisted" => (ExposureVerdict::NotWhitelisted, None),
                    other => panic!("{file}: unknown result {other}"),
                };
                assert_eq!((got.0, got.1), want, "{file}, {id}: {tool}");
                if let Some(transformed) = tool["transformed"].as_str() {
                    assert!(
                        got.2.contains(&format!("after transforms, `{transformed}`")),
                        "{file}: {}",
                        got.2
                    );
                }
                if let Some(pattern) = tool["pattern"].as_str() {
                    assert_eq!(got.2, format!("blacklist `{pattern}`"), "{file}: {tool}");
                }
                names += 1;
            }
        }
    }
    assert!(names > 1_000, "only {names} names were compared");
}

/// Normalised names equal those of HoloDeck and Semantic Kernel, and so do qualified names after their prefix. A
/// name of more than 64 bytes is cut and ends with a hash only here, because providers refuse longer names.
#[test]
fn hd_114_sk_01_x_03_names_are_those_of_holodeck_and_semantic_kernel() {
    let Some(holodeck) = recording("holodeck.json") else { return };
    let rows = rows(&holodeck, "names");
    assert!(rows.len() >= 12, "only {} rows", rows.len());
    for row in rows {
        let input = text(&row["input"]);
        let named = |naming| {
            let exposed = decide(&server("item"), &ExposureRules::new(naming), input).exposed;
            exposed.map(|it| it.as_str().to_owned())
        };
        let compare = |naming, want: String| {
            let got = named(naming).expect("a name is always made");
            if want.len() <= 64 {
                assert_eq!(got, want, "{row}");
            } else {
                assert_eq!((got.len(), &got[..55]), (64, &want[..55]), "{row}");
            }
        };
        let classes =
            [(NameClass::Strict, "holodeck_normalize_v0640"), (NameClass::WithDot, "semantic_kernel")];
        for (class, key) in classes {
            compare(NamePolicy::Normalise { class }, text(&row[key]).to_owned());
            compare(NamePolicy::Qualify { class }, format!("item__{}", text(&row[key])));
        }
        let valid = named(NamePolicy::Reject).is_some();
        assert_eq!(Value::from(valid), row["dominds_valid"], "{row}");
    }
}
