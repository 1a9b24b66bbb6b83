//! Skills: the official client lists and reads those of two official servers through `serve`, in both eras.

use std::fs;
use std::path::Path;

use mcp_testkit::program::{Run, root};
use serde_json::{Value, json};

use super::{Gateway, Installed};

fn write_skill(folder: &Path, name: &str, text: &str, files: &[(&str, &str)]) {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    let frontmatter = format!("---\nname: {name}\ndescription: About {name}\n---\n{text}");
    for (file, text) in files.iter().chain([&("SKILL.md", &*frontmatter)]) {
        fs::write(folder.join(file), text).unwrap();
    }
}

/// Two servers with skills, of which one has the same URI in both. Returns the path of the configuration.
fn write_configuration(installed: &Installed, folder: &Path) -> String {
    write_skill(&folder.join("a"), "release", "the release of a", &[("STEPS.md", "steps of a")]);
    write_skill(&folder.join("b"), "release", "the release of b", &[("NOTES.md", "notes of b")]);
    write_skill(&folder.join("b"), "review", "the review", &[]);
    let server = |name: &str| {
        json!({
            "command": installed.node().to_str(),
            "args": [root().join("tests/conformance/skill_server.mjs"), folder.join(name)],
            "env": {"MCP_HOST_CONFORMANCE": installed.modules},
        })
    };
    let file = folder.join("mcp.json");
    let demo = json!({"command": "mcp-host", "args": ["demo-server"]});
    let servers = json!({"mcpServers": {"a": server("a"), "b": server("b"), "none": demo}});
    fs::write(&file, servers.to_string()).unwrap();
    file.display().to_string()
}

#[track_caller]
fn check(seen: &Value, version: &str) {
    const RELEASE: &str = "skill://mcp-host-server=b/release";
    assert_eq!(seen["version"], version, "{seen:#}");
    let skills = seen["skills"].as_array().unwrap();
    let skills: Vec<(&str, &str)> = skills
        .iter()
        .map(|it| (it["uri"].as_str().unwrap(), it["frontmatter"]["description"].as_str().unwrap()))
        .collect();
    let second = format!("{RELEASE}/SKILL.md");
    assert_eq!(
        skills,
        [
            ("skill://release/SKILL.md", "About release"),
            (&*second, "About release"),
            ("skill://review/SKILL.md", "About review"),
        ]
    );
    let read = &seen["read"];
    for (uri, end) in [
        ("skill://release/SKILL.md", "the release of a"),
        ("skill://release/STEPS.md", "steps of a"),
        (&*second, "the release of b"),
        (&*format!("{RELEASE}/NOTES.md"), "notes of b"),
        ("skill://review/SKILL.md", "the review"),
    ] {
        assert!(read[uri].as_str().is_some_and(|text| text.ends_with(end)), "{uri}: {read:#}");
    }
    assert_eq!(read.as_object().unwrap().len(), 5, "{read:#}");
    assert!(seen["unknown"]["code"].is_i64(), "{seen:#}");
}

#[test]
fn official_client_lists_and_reads_skills_of_two_servers() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = write_configuration(&installed, folder.path());
    let gateway = Gateway::start(folder.path(), &file, &[]);
    gateway.wait_until_ready();
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let seen = installed.script("skill_client.mjs", &[&gateway.url(), mode]).json();
        check(&seen, version);
    }
}

/// The same servers without the gateway.
#[test]
fn command_lists_and_checks_skills() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = write_configuration(&installed, folder.path());
    let run = |arguments: &[&str]| {
        Run::new(folder.path(), folder.path(), &[&["skills", &file], arguments].concat()).finish()
    };
    let listed = run(&["--format", "json"]).json();
    let names: Vec<(&str, &str)> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["server"].as_str().unwrap(), it["name"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("a", "release"), ("b", "release"), ("b", "review")]);
    let release = ["--server", "b", "--read", "skill://release/SKILL.md"];
    assert!(run(&release).stdout.ends_with("the release of b\n"));
    let notes = run(&[&release[..], &["--resource", "skill://release/NOTES.md"]].concat());
    assert_eq!(notes.stdout, "notes of b\n");
    let other = run(&[&release[..], &["--resource", "skill://review/SKILL.md"]].concat());
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("skill://review/SKILL.md is not a file of the skill"), "{}", other.stderr);
}
