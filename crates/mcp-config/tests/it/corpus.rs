//! Real configuration files: reading never panics, spans are valid, and secrets are hidden. HoloDeck's and
//! Dominds' files have the same results as in the real systems.
//!
//! `MCP_HOST_CORPUS` names a folder with an `index.tsv` of the files, `MCP_HOST_ORACLES` the recorded results.

use std::path::{Path, PathBuf};

use mcp_host_config::{
    Colour, Document, Profile, Reading, detect, read, read_detecting, render, text_to_json,
};
use mcp_host_model::{Dialect, Severity};
use serde_json::Value;

use crate::collections::{
    Case, Differences, compare, complete_agent, expect_list, expect_text, folder_of_variable,
    recorded_results,
};
use crate::oracles::{NEWEST_VERSION, PAPER_VERSION, describe_servers, describe_their_servers};

/// A file of the corpus.
struct CorpusFile {
    path: String,
    dialect: String,
    /// The syntax according to the index: `yaml` or `json` if the file has no syntax error.
    syntax: String,
}

fn read_index(folder: &Path) -> Vec<CorpusFile> {
    let table = std::fs::read_to_string(folder.join("index.tsv")).unwrap();
    let row = |line: &str| {
        let columns: Vec<_> = line.split('\t').collect();
        CorpusFile {
            path: columns[0].to_owned(),
            dialect: columns[1].to_owned(),
            syntax: columns[5].to_owned(),
        }
    };
    let res: Vec<_> = table.lines().skip(1).map(row).collect();
    assert!(!res.is_empty(), "the index is empty");
    res
}

/// Reads a file of the corpus; invalid UTF-8 is replaced.
fn read_file(folder: &Path, path: &str) -> String {
    let bytes = std::fs::read(folder.join(path)).unwrap_or_else(|it| panic!("{path}: {it}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The minimum length of a text in `env` or `headers` that counts as a secret.
const MIN_SECRET_LENGTH: usize = 9;

/// All texts in `env` and `headers`, except those that are only `${NAME}`, because names may be shown.
fn find_secrets(text: &str) -> Vec<String> {
    fn collect(value: &Value, inside: bool, out: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                // The name of a name-value pair is not a secret.
                let is_pair = members.contains_key("value");
                // A variable with such a name contains a region or a folder, not a secret.
                let is_place = |key: &str| ["REGION", "WORKSPACE"].iter().any(|it| key.ends_with(it));
                let is_open = |key: &str| (is_pair && key == "name") || (inside && is_place(key));
                for (key, value) in members.iter().filter(|it| !is_open(it.0)) {
                    collect(value, inside || ["env", "headers"].contains(&key.as_str()), out);
                }
            }
            Value::Array(items) => items.iter().for_each(|it| collect(it, inside, out)),
            Value::String(text) if inside => out.push(text.clone()),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    fn collect_folders(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                out.extend(members.get("cwd").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|it| collect_folders(it, out));
            }
            Value::Array(items) => items.iter().for_each(|it| collect_folders(it, out)),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let (mut res, mut open) = (Vec::new(), Vec::new());
    match text_to_json(text) {
        Some(json) => {
            let json = json.read().unwrap();
            collect(&json, false, &mut res);
            // A folder that is also a `cwd`, which may be shown, is not a secret.
            collect_folders(&json, &mut open);
        }
        None => res.extend(named_values(text)),
    }
    res.retain(|it| !open.contains(it));
    res.retain(|it| it.len() >= MIN_SECRET_LENGTH && !(it.starts_with("${") && it.ends_with('}')));
    res
}

/// The text after `"NAME":` in a text that cannot be parsed, if the name looks like a variable or a header.
fn named_values(text: &str) -> Vec<String> {
    let is_name = |name: &str| {
        let name = name.trim().trim_matches(['"', '\'']);
        let is_variable = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
        !name.is_empty() && (name.bytes().all(is_variable) || name == "Authorization")
    };
    let pair = |line: &str| {
        let (name, value) = line.trim_start_matches(['-', ' ', '{']).split_once(':')?;
        is_name(name)
            .then(|| value.trim().trim_end_matches([',', '}', ' ']).trim_matches(['"', '\'']).to_owned())
    };
    text.lines().filter_map(pair).collect()
}

/// Checks that spans are inside the text and that no output contains a secret.
fn check_reading(path: &str, text: &str, reading: &Reading) {
    let secrets = find_secrets(text);
    let check_no_secret = |shown: &str| {
        if let Some(secret) = secrets.iter().find(|it| shown.contains(*it)) {
            panic!("{path}: the value {secret:?} is shown");
        }
    };
    for it in &reading.diagnostics {
        let spans = it.labels.iter().map(|it| &it.span).chain([&it.span]);
        for span in spans {
            assert!(text.get(span.clone()).is_some(), "{path}: {span:?} does not fit: {it}");
        }
        assert!(it.line <= text.split('\n').count(), "{path}: line {}", it.line);
        check_no_secret(&it.to_string());
        check_no_secret(it.help.as_deref().unwrap_or_default());
        it.labels.iter().for_each(|it| check_no_secret(&it.text));
    }
    check_no_secret(&serde_json::to_string(&reading.diagnostics).unwrap());
    check_no_secret(&render(path, text, &reading.diagnostics, Colour::Never));
    // No line shows a secret when a diagnostic points at it.
    if let Some(first) = reading.diagnostics.first() {
        let lines = text.split_inclusive('\n').scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            let mut diagnostic = first.clone();
            (diagnostic.span, diagnostic.labels) = (start..*at, Vec::new());
            Some(diagnostic)
        });
        check_no_secret(&render(path, text, &lines.collect::<Vec<_>>(), Colour::Never));
    }
}

#[test]
fn hd_061_x_31_real_files_are_read_and_their_secrets_hidden() {
    let name = "hd_061_x_31_real_files_are_read_and_their_secrets_hidden";
    let Some(folder) = folder_of_variable("MCP_HOST_CORPUS", name) else { return };
    let mut secret_count = 0;
    for CorpusFile { path, .. } in read_index(&folder) {
        let text = read_file(&folder, &path);
        secret_count += find_secrets(&text).len();
        detect(&path, &text);
        for &profile in Profile::ALL {
            check_reading(&path, &text, &read(&Document::new(&path, &text, profile)));
        }
    }
    assert!(secret_count > 0, "no file has a secret");
}

/// Files whose dialect cannot be detected by content.
const UNDETECTED: Differences<'_> = &[
    ("a single field, cut out of an agent", &["holodeck/053-holodeck.yaml"]),
    (
        "HoloDeck's global configuration is no agent",
        &["holodeck/044-holodeck.yaml", "holodeck/098-holodeck.yaml", "holodeck/101-holodeck.yaml"],
    ),
];

#[test]
fn dialect_of_real_files_is_detected_by_content() {
    let Some(folder) = folder_of_variable("MCP_HOST_CORPUS", "dialect_of_real_files_is_detected_by_content")
    else {
        return;
    };
    let case = |it: CorpusFile| -> Case {
        let found = detect(&it.path, &read_file(&folder, &it.path));
        let ours = found.map_or("none", Dialect::as_str);
        (it.path, it.dialect, ours.to_owned())
    };
    let files =
        read_index(&folder).into_iter().filter(|it| ["holodeck", "dominds"].contains(&it.dialect.as_str()));
    let cases: Vec<_> = files.map(case).collect();
    compare("real files, detected", &cases, UNDETECTED);
}

/// The folder of the corpus and recorded results; `None` if a variable is not set.
fn corpus_and_results(test: &str, name: &str) -> Option<(PathBuf, Value)> {
    Some((folder_of_variable("MCP_HOST_CORPUS", test)?, recorded_results(test, name)?))
}

/// Each tool, and whether it has an error.
fn describe_tools(reading: &Reading) -> String {
    let has_error = |pointer: &str| {
        reading.diagnostics.iter().any(|it| {
            let below = it.pointer.strip_prefix(pointer);
            it.severity == Severity::Error && below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        })
    };
    let line = |it: &mcp_host_config::ServerEntry| format!("{}: {}", it.name, !has_error(&it.pointer));
    reading.entries.iter().map(line).collect::<Vec<_>>().join(", ")
}

#[test]
fn holodeck_0_7_accepts_the_same_tools_of_real_files() {
    let test = "holodeck_0_7_accepts_the_same_tools_of_real_files";
    let Some((folder, recorded)) = corpus_and_results(test, "holodeck.json") else { return };
    let case = |file: &Value| -> Case {
        let path = expect_text(&file["file"]);
        let agent = complete_agent(&read_file(&folder, path));
        let reading = read(&Document::new(path, &agent, Profile::HoloDeck07));
        let line = |(index, it): (usize, &Value)| {
            let name = it["name"].as_str().map_or_else(|| format!("tools[{index}]"), str::to_owned);
            format!("{name}: {}", it["outcome"] == "accept")
        };
        let theirs: Vec<_> = expect_list(&file["tools"]).iter().enumerate().map(line).collect();
        (path.to_owned(), theirs.join(", "), describe_tools(&reading))
    };
    // The others are files of other programs.
    let files =
        expect_list(&recorded["files"]).iter().filter(|it| expect_text(&it["file"]).starts_with("holodeck/"));
    let cases: Vec<_> = files.map(case).collect();
    compare("HoloDeck 0.7, real files", &cases, &[]);
}

/// Files with tools of the contract.
const CONTRACT_FILES: Differences<'_> = &[(
    "HD-007: `server`, which the contract requires and HoloDeck 0.7 refuses",
    &[
        "holodeck/002-holodeck.yaml",
        "holodeck/007-holodeck-samples.yaml",
        "holodeck/010-holodeck-samples.yaml",
        "holodeck/017-holodeck-samples.yaml",
        "holodeck/020-holodeck-samples.yaml",
        "holodeck/023-holodeck-samples.yaml",
        "holodeck/029-holodeck.yaml",
        "holodeck/037-holodeck.yaml",
        "holodeck/041-holodeck.yaml",
        "holodeck/064-holodeck.yaml",
        "holodeck/065-holodeck.yaml",
        "holodeck/067-holodeck.yaml",
        "holodeck/073-holodeck.yaml",
        "holodeck/074-holodeck.yaml",
        "holodeck/076-holodeck.yaml",
        "holodeck/077-holodeck.yaml",
        "holodeck/079-holodeck.yaml",
        "holodeck/080-holodeck.yaml",
        "holodeck/082-holodeck.yaml",
        "holodeck/083-holodeck.yaml",
        "holodeck/085-holodeck.yaml",
        "holodeck/086-holodeck.yaml",
        "holodeck/088-holodeck.yaml",
        "holodeck/089-holodeck.yaml",
        "holodeck/091-holodeck.yaml",
        "holodeck/092-holodeck.yaml",
        "holodeck/094-holodeck.yaml",
        "holodeck/095-holodeck.yaml",
    ],
)];

#[test]
fn hd_007_real_files_are_read_by_the_rules_that_they_follow() {
    let test = "hd_007_real_files_are_read_by_the_rules_that_they_follow";
    let Some((folder, recorded)) = corpus_and_results(test, "holodeck.json") else { return };
    let case = |file: &Value| -> Case {
        let path = expect_text(&file["file"]);
        let agent = complete_agent(&read_file(&folder, path));
        let reading = read_detecting(Dialect::HoloDeck, path, &agent, Document::DEFAULT_MAX_SERVERS).reading;
        let theirs = |it: &Value| format!("{}: {}", expect_text(&it["name"]), it["outcome"] == "accept");
        let theirs: Vec<_> = expect_list(&file["tools"]).iter().map(theirs).collect();
        (path.to_owned(), theirs.join(", "), describe_tools(&reading))
    };
    let files =
        expect_list(&recorded["files"]).iter().filter(|it| expect_text(&it["file"]).starts_with("holodeck/"));
    let cases: Vec<_> = files.map(case).collect();
    assert!(cases.len() >= 60, "the corpus has only {} files", cases.len());
    let outcomes = [": true", ": false"].map(|it| cases.iter().filter(|case| case.1.contains(it)).count());
    assert!(outcomes.iter().all(|it| *it >= 20), "files with accepted and refused tools: {outcomes:?}");
    compare("HoloDeck, real files by detected rules", &cases, CONTRACT_FILES);
}

/// Files that are invalid in HoloDeck's contract and in HoloDeck 0.7.
const INVALID_AGENTS: Differences<'_> = &[
    (
        "HD-002, HD-007: no `server`, which the contract requires, and a name with `-`, which 0.7 refuses",
        &[
            "holodeck/001-holodeck.yaml",
            "holodeck/040-holodeck.yaml",
            "holodeck/049-holodeck.yaml",
            "holodeck/050-holodeck.yaml",
            "holodeck/059-holodeck.yaml",
            "holodeck/062-holodeck.yaml",
        ],
    ),
    ("HD-005, HD-007: neither `server` nor `description`", &["holodeck/097-holodeck.yaml"]),
    (
        "HD-012: no command, and no scoped npm package to run instead",
        &[
            "holodeck/035-holodeck.yaml",
            "holodeck/038-holodeck.yaml",
            "holodeck/068-holodeck.yaml",
            "holodeck/100-holodeck.yaml",
        ],
    ),
    ("HD-010: `transport` is a mapping", &["holodeck/043-holodeck.yaml", "holodeck/044-holodeck.yaml"]),
    ("HD-013: `command` is a list", &["holodeck/070-holodeck.yaml"]),
    (
        "HD-004, HD-010: a form to fill in, with `string` and a choice of words where values belong",
        &["holodeck/028-holodeck.yaml", "holodeck/031-holodeck.yaml", "holodeck/032-holodeck.yaml"],
    ),
    ("HD-006: a single field, without a type", &["holodeck/053-holodeck.yaml"]),
    ("HDX-24: several examples in one, so that `tools` appears twice", &["holodeck/071-holodeck.yaml"]),
];

#[test]
fn real_agents_are_accepted_or_have_an_error() {
    let test = "real_agents_are_accepted_or_have_an_error";
    let Some(folder) = folder_of_variable("MCP_HOST_CORPUS", test) else { return };
    let case = |it: CorpusFile| -> Case {
        let agent = complete_agent(&read_file(&folder, &it.path));
        let read_as = |profile| read(&Document::new(&it.path, &agent, profile));
        let readings = [read_as(Profile::HoloDeck), read_as(Profile::HoloDeck07)];
        let errors: Vec<_> = readings
            .iter()
            .map(|it| {
                crate::diagnostic_lines(it)
                    .lines()
                    .filter(|it| it.starts_with("error"))
                    .collect::<Vec<_>>()
                    .join("; ")
            })
            .collect();
        let is_accepted = readings.iter().any(|it| !it.refused);
        (
            it.path.clone(),
            "accepted".to_owned(),
            if is_accepted { "accepted".to_owned() } else { errors.join(" | ") },
        )
    };
    let files = read_index(&folder).into_iter().filter(|it| it.dialect == "holodeck" && it.syntax == "yaml");
    let cases: Vec<_> = files.map(case).collect();
    compare("HoloDeck, real files by any profile", &cases, INVALID_AGENTS);
}

/// Files with another result in the version of Dominds that the paper describes.
const DOMINDS_FILES: Differences<'_> = &[(
    "newer versions read the key, or are stricter about it",
    &[
        "dominds/017-dominds.yaml",
        "dominds/019-dominds.yaml",
        "dominds/025-dominds.yaml",
        "dominds/029-dominds.yaml",
        "dominds/043-dominds.yaml",
    ],
)];

#[test]
fn dominds_accepts_the_same_servers_of_real_files() {
    let test = "dominds_accepts_the_same_servers_of_real_files";
    let Some((folder, recorded)) = corpus_and_results(test, "dominds.json") else { return };
    let case = |version: &str, (path, answers): (&String, &Value)| -> Case {
        let text = read_file(&folder, path);
        let reading = read(&Document::new(path, &text, Profile::Dominds));
        (path.clone(), describe_their_servers(&answers[version]), describe_servers(&reading))
    };
    let files = recorded["files"].as_object().unwrap();
    let cases: Vec<_> = files.iter().map(|it| case(PAPER_VERSION, it)).collect();
    compare("Dominds of the paper, real files", &cases, DOMINDS_FILES);
    let cases: Vec<_> = files.iter().map(|it| case(NEWEST_VERSION, it)).collect();
    compare("Dominds today, real files", &cases, &[]);
}

/// The profile of a file of the corpus; `None` for YAML.
fn json_profile(listed: &CorpusFile) -> Option<Profile> {
    match listed.dialect.as_str() {
        "holodeck" | "dominds" | "foreign-yaml" => None,
        "acp" | "acp-server" => Some(Profile::AcpV1),
        _ => Some(Profile::McpJson),
    }
}

/// JSON files whose dialect cannot be detected by content.
const UNDETECTED_JSON: Differences<'_> =
    &[("settings of an editor without servers", &["zed/001-dyablog.json"])];

#[test]
fn dia_01_dialect_of_real_json_files_is_detected_by_content() {
    let Some(folder) =
        folder_of_variable("MCP_HOST_CORPUS", "dia_01_dialect_of_real_json_files_is_detected_by_content")
    else {
        return;
    };
    let case = |it: CorpusFile| -> Option<Case> {
        let theirs = json_profile(&it)?.dialect().as_str();
        // With a file name that does not identify the dialect.
        let found = detect("x.json", &read_file(&folder, &it.path));
        Some((it.path, theirs.to_owned(), found.map_or("none", Dialect::as_str).to_owned()))
    };
    let cases: Vec<_> = read_index(&folder).into_iter().filter_map(case).collect();
    compare("real JSON files, detected", &cases, UNDETECTED_JSON);
}

/// JSON files of the corpus with a mistake.
const INVALID_JSON: Differences<'_> = &[
    (
        "ACP-022: the command is no absolute path (and more, in some)",
        &[
            "acp/010-index-70388514658.json",
            "acp/013-index-69019445772.json",
            "acp/014-index-69482610762.json",
            "acp/017-index-70085640826.json",
            "acp/022-codex-acp.json",
            "acp/023-codex-acp.json",
        ],
    ),
    (
        "ACP-004, ACPX-09: a required field is missing",
        &[
            "acp/002-index-71254481483.json",
            "acp/004-index-70989243246.json",
            "acp/005-index-70989243246.json",
            "acp/016-index-56731245479.json",
        ],
    ),
    ("ACPX-10: `initialize` has no servers", &["acp/007-index-56673592992.json"]),
    (
        "a form to fill in: the URL or the path is a placeholder",
        &[
            "claude-code/007-website.json",
            "claude-desktop/022-website.json",
            "claude-desktop/031-semantic-kernel.json",
            "vscode-settings/002-mcp-context-forge.json",
            "vscode/028-mcp-agent.json",
            "vscode/037-mcp-gateway.json",
        ],
    ),
    (
        "DIA-05: the command is a whole line",
        &["gemini-cli/007-gemini-cli.json", "gemini-cli/016-gemini-cli.json"],
    ),
    ("a server that is an empty object", &["kiro/010-mcp-gateway.json", "zed/023-mcp-gateway.json"]),
    (
        "DIA-02: a piece of a file",
        &["cline/001-mcp-context-forge.json", "zed/019-servers.json", "zed/020-servers.json"],
    ),
    (
        "DIA-02: neither JSON nor JSON with comments",
        &[
            "invalid-json/001-mcp-context-forge.json",
            "invalid-json/002-fastmcp.json",
            "invalid-json/004-mcp.json",
            "invalid-json/005-gemini-cli.json",
        ],
    ),
    ("DIA-11: no file of MCP servers", &["zed/001-dyablog.json"]),
];

#[test]
fn dia_02_real_json_files_are_accepted_or_have_an_error() {
    let test = "dia_02_real_json_files_are_accepted_or_have_an_error";
    let Some(folder) = folder_of_variable("MCP_HOST_CORPUS", test) else { return };
    let case = |it: CorpusFile| -> Option<Case> {
        let profile = json_profile(&it)?;
        let text = read_file(&folder, &it.path);
        let reading = read(&Document::new(&it.path, &text, profile));
        let found = crate::diagnostic_lines(&reading);
        let errors: Vec<_> = found.lines().filter(|it| it.starts_with("error")).collect();
        let ours = if errors.is_empty() { "accepted".to_owned() } else { errors.join("; ") };
        Some((it.path, "accepted".to_owned(), ours))
    };
    let cases: Vec<_> = read_index(&folder).into_iter().filter_map(case).collect();
    compare("real JSON files", &cases, INVALID_JSON);
}
