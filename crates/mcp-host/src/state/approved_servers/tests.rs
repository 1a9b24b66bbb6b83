//! The fingerprint of a server, and the file of approvals.

use std::cell::Cell;
use std::path::Path;
use std::time::SystemTime;

use mcp_host_config::{Document, Profile, ResolveContext, ResolvedServer, read, resolve};

use super::*;
use crate::state::start_identity::{FileAccess, StartIdentity, identity};

/// The servers of a file in the project `/w`, with these variables of the user.
fn servers(file: &str, text: &str, variables: &[(&str, &str)]) -> Vec<ResolvedServer> {
    let reading = read(&Document::new(file, text, Profile::McpJson));
    assert!(!reading.has_errors(), "{:?}", reading.diagnostics);
    let variable = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
    let read_file = |path: &Path| match path.ends_with(".env") {
        true => Ok("FROM_FILE=1".to_owned()),
        false => Err("no such file".to_owned()),
    };
    let folder = Path::new(file).parent().unwrap();
    let context = ResolveContext::new(&variable, folder, &read_file);
    reading.servers.iter().map(|it| resolve(it, &context).unwrap()).collect()
}

/// The identity with this hash of files, from another folder.
fn identity_of(server: &ResolvedServer, hash: &dyn Fn(&Path) -> Option<blake3::Hash>) -> StartIdentity {
    let resolve = |path: &Path| path.to_owned();
    let find = |_: &str, _: &str, _: &Path| None;
    identity(server, &FileAccess { current: Path::new("/elsewhere"), hash, resolve: &resolve, find: &find })
}

fn of_entry(entry: &str, variables: &[(&str, &str)], script: &str) -> String {
    let text = format!("{{\"servers\": {{\"a\": {entry}}}}}");
    let server = &servers("/w/.vscode/mcp.json", &text, variables)[0];
    let hash = |path: &Path| path.ends_with("server.py").then(|| blake3::hash(script.as_bytes()));
    identity_of(server, &hash).fingerprint
}

const ENTRY: &str =
    r#"{"command": "python3", "args": ["server.py", "-v"], "env": {"A": "1", "T": "${env:TOKEN}"}}"#;

/// RPT-281
#[test]
fn rpt_281_fingerprint_covers_what_is_started() {
    let base = of_entry(ENTRY, &[("TOKEN", "t")], "print(1)");
    let same = |entry: &str, variables: &[(&str, &str)], script: &str| {
        assert_eq!(of_entry(entry, variables, script), base, "{entry}");
    };
    // A renewed token, the order of variables, the name of the server's description, limits.
    same(ENTRY, &[("TOKEN", "other")], "print(1)");
    same(
        &ENTRY.replace(r#""A": "1", "T": "${env:TOKEN}""#, r#""T": "${env:TOKEN}", "A": "1""#),
        &[("TOKEN", "t")],
        "print(1)",
    );
    same(
        &ENTRY.replace(r#"{"command""#, r#"{"description": "d", "timeout": 5, "command""#),
        &[("TOKEN", "t")],
        "print(1)",
    );
    let differs = |entry: &str, script: &str| {
        assert_ne!(of_entry(entry, &[("TOKEN", "t"), ("KEY", "t")], script), base, "{entry} {script}");
    };
    differs(ENTRY, "print(2)");
    for (from, to) in [
        ("python3", "python"),
        ("python3", "/w/python3"),
        ("\"-v\"", "\"-v\", \"--more\""),
        ("\"-v\"", "\"-V\""),
        ("\"server.py\", \"-v\"", "\"server.py -v\""),
        ("\"A\": \"1\"", "\"A\": \"2\""),
        ("\"A\": \"1\"", "\"B\": \"1\""),
        ("\"A\": \"1\"", "\"A\": \"1\", \"LD_PRELOAD\": \"x.so\""),
        ("${env:TOKEN}", "${env:KEY}"),
        ("{\"command\"", "{\"cwd\": \"/tmp\", \"command\""),
        ("{\"command\"", "{\"envFile\": \".env\", \"command\""),
        ("{\"command\"", "{\"sandbox\": \"project\", \"command\""),
    ] {
        let changed = ENTRY.replace(from, to);
        assert_ne!(changed, ENTRY, "{from}");
        differs(&changed, "print(1)");
    }
    let url = r#"{"type": "http", "url": "https://a.example/mcp", "headers": {"A": "Bearer ${env:TOKEN}"}}"#;
    let of_url = |from: &str, to: &str, token: &str| {
        of_entry(&url.replace(from, to), &[("TOKEN", token), ("KEY", "t")], "")
    };
    assert_eq!(of_url("", "", "t"), of_url("", "", "u"));
    for (from, to) in [
        ("a.example", "b.example"),
        ("https", "http"),
        ("/mcp", "/mcp?x=1"),
        ("\"A\"", "\"B\""),
        ("env:TOKEN", "env:KEY"),
        ("\"http\"", "\"sse\""),
    ] {
        assert_ne!(of_url("", "", "t"), of_url(from, to, "t"), "{from} {to}");
    }
}

/// RPT-281
#[test]
fn rpt_281_scripts_in_the_project_count_only() {
    let seen = Cell::new(0);
    let count = |entry: &str| {
        seen.set(0);
        let text = format!("{{\"servers\": {{\"a\": {entry}}}}}");
        let server = &servers("/w/.vscode/mcp.json", &text, &[])[0];
        let hash = |_: &Path| {
            seen.set(seen.get() + 1);
            None
        };
        identity_of(server, &hash);
        seen.get()
    };
    assert_eq!(count(r#"{"command": "node", "args": ["x.js"]}"#), 1);
    assert_eq!(count(r#"{"command": "./run", "args": ["--config=a/b.json"]}"#), 3);
    assert_eq!(count(r#"{"command": "node", "args": ["../x.js", "/usr/lib/x.js"]}"#), 0);
    assert_eq!(count(r#"{"command": "node", "args": ["../x.js"], "cwd": "/w/sub"}"#), 1);
}

/// RPT-283
#[test]
fn rpt_283_approvals_are_stored_privately_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/approved.json");
    let store = ApprovedServers::new(&path);
    let text = r#"{"servers": {"a": {"command": "x"}, "b": {"url": "https://b.example/0123456789abcdef0123456789abcdef"}}}"#;
    let all = servers("/w/.vscode/mcp.json", text, &[]);
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(store.pending(&all).unwrap().len(), 2);
    store.approve(&all, SystemTime::now()).unwrap();
    assert!(store.pending(&all).unwrap().is_empty());
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("0123456789abcdef0123456789abcdef\""));
    // A changed entry waits, and is known as changed. Another one with the same content needs no approval.
    let changed = servers("/w/.vscode/mcp.json", &text.replace("\"x\"", "\"y\""), &[]);
    let pending: Vec<_> = store
        .pending(&changed)
        .unwrap()
        .iter()
        .map(|it| (it.server.spec.id.to_string(), it.changed_parts()))
        .collect();
    assert_eq!(pending, [("a".to_owned(), Some(vec![ProgramPart::Command]))]);
    let error = store.check(&changed[0]).unwrap_err();
    assert!(error.message.contains("was changed since you approved it"), "{error}");
    assert!(error.help.unwrap().contains("mcp-host trust /w/.vscode/mcp.json"));
    assert_eq!(store.revoke(|it| it.server == "a").unwrap(), 1);
    assert_eq!(store.pending(&all).unwrap().len(), 1);
    // An approval of an earlier version does not know what was approved.
    let old = r#"{"version": 1, "approved": [
        {"fingerprint": "f", "file": "/w/.vscode/mcp.json", "server": "a", "target": "x", "approved_at": 0}]}"#;
    std::fs::write(&path, old).unwrap();
    let pending = store.pending(&all).unwrap();
    assert!(pending[0].approved.is_some() && pending[0].changed_parts().is_none(), "{pending:?}");
    assert!(pending[1].approved.is_none(), "{pending:?}");
    // A broken file approves nothing.
    std::fs::write(&path, "{").unwrap();
    assert!(store.list().is_err() && store.check(&all[1]).is_err());
    std::fs::write(&path, r#"{"version": 2, "approved": []}"#).unwrap();
    assert!(store.list().is_err());
}

/// A source whose secrets are their names, and a number.
struct Numbered(u32);

impl mcp_host_config::SecretSource for Numbered {
    fn secret(&self, name: &str) -> Result<Option<mcp_host_model::Secret>, String> {
        Ok(Some(mcp_host_model::Secret::new(format!("{name}-{}", self.0))))
    }
}

/// RPT-304
#[test]
fn rpt_304_fingerprint_covers_the_names_of_secrets_and_not_their_values() {
    use mcp_host_config::SecretAccess;

    let of = |entry: &str, access: SecretAccess<'_>| {
        let text = format!("{{\"servers\": {{\"a\": {entry}}}}}");
        let reading = read(&Document::new("/w/.vscode/mcp.json", &text, Profile::McpJson));
        let mut context =
            ResolveContext::new(&|_| None, Path::new("/w/.vscode"), &|_| Err("no such file".to_owned()));
        context.secrets = access;
        let server = resolve(&reading.servers[0], &context).unwrap();
        identity_of(&server, &|_| None).fingerprint
    };
    let [stdio, url] = [
        r#"{"command": "x", "env": {"T": "${secret:KEY}", "I": "${input:id}"}}"#,
        r#"{"url": "https://a.example/mcp?k=${secret:KEY}", "headers": {"H": "${secret:KEY}"}}"#,
    ];
    for entry in [stdio, url] {
        let base = of(entry, SecretAccess::Withheld);
        assert_eq!(of(entry, SecretAccess::Granted(&Numbered(1))), base, "{entry}");
        assert_eq!(of(entry, SecretAccess::Granted(&Numbered(2))), base, "{entry}");
        let changes = [
            ("KEY", "OTHER"),
            ("\"x\"", "\"y\""),
            ("a.example", "b.example"),
            ("?k=", "?j="),
            ("input:id", "input:x"),
        ];
        for (from, to) in changes.into_iter().filter(|(from, _)| entry.contains(from)) {
            assert_ne!(of(&entry.replace(from, to), SecretAccess::Withheld), base, "{entry} {from}");
        }
    }
}
