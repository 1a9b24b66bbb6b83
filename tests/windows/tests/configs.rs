//! Configuration files as users of Windows have them, read and resolved with the variables of such a user.
//!
//! `configs/` has the files under the paths that they have in a home folder, and `expected.json` what each server is
//! started with. `cargo xtask windows --wine` starts the same servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mcp_host_config::{Document, Profile, ResolveContext, read, resolve};
use mcp_host_model::Endpoint;
use serde::Deserialize;

/// The home folder. On other systems than Windows, paths have this separator only.
const HOME: &str = "C:/Users/Zoë B";

/// What a server is started with.
#[derive(Debug, PartialEq, Deserialize)]
struct ExpectedStart {
    /// The command and its arguments.
    start: Vec<String>,
    /// Some of its variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The working directory, if the file decides it.
    directory: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

fn variable(name: &str) -> Option<String> {
    Some(match name {
        "USERPROFILE" => HOME.to_owned(),
        "APPDATA" => format!("{HOME}/AppData/Roaming"),
        "LOCALAPPDATA" => format!("{HOME}/AppData/Local"),
        "PRICES_KEY" => "example".to_owned(),
        _ => return None,
    })
}

/// `\` and `/` separate folders alike, and `${workspaceFolder}` has those of the system that this test runs on.
fn normalized(text: &str) -> String {
    text.replace('\\', "/")
}

/// RPT-342
#[test]
fn rpt_342_files_of_windows_users_start_what_their_programs_start() {
    let text = fs::read_to_string(folder().join("expected.json")).unwrap();
    let expected: BTreeMap<String, BTreeMap<String, ExpectedStart>> = serde_json::from_str(&text).unwrap();
    assert_eq!(expected.len(), 13, "twelve in JSON and one in TOML");
    for (path, servers) in expected {
        let text = fs::read_to_string(folder().join(&path)).unwrap();
        // A byte order mark is removed where a file is decoded.
        let text = text.trim_start_matches('\u{feff}');
        let reading = read(&Document::new(&path, text, Profile::McpJson));
        let messages: Vec<_> = reading.diagnostics.iter().map(ToString::to_string).collect();
        assert!(!reading.has_errors(), "{path}: {messages:?}");
        let directory = PathBuf::from(format!("{HOME}/{path}"));
        let no_file = |_: &Path| Err("no such file".to_owned());
        let context = ResolveContext::new(&variable, directory.parent().unwrap(), &no_file);
        let mut found = BTreeMap::new();
        for spec in &reading.servers {
            let resolved = resolve(spec, &context).unwrap();
            let Endpoint::Stdio(endpoint) = resolved.endpoint else { panic!("{path}: not stdio") };
            let arguments = endpoint.args.iter().map(|it| normalized(it.expose()));
            let start = std::iter::once(normalized(&endpoint.command)).chain(arguments).collect();
            let env = endpoint.env.iter().map(|(name, value)| (name.clone(), normalized(value.expose())));
            let directory = endpoint.cwd.as_ref().map(|it| normalized(&it.display().to_string()));
            found.insert(spec.id.to_string(), ExpectedStart { start, env: env.collect(), directory });
        }
        let names: Vec<_> = found.keys().cloned().collect();
        assert_eq!(names, servers.keys().cloned().collect::<Vec<_>>(), "{path}");
        for (name, ExpectedStart { start, env, directory }) in servers {
            let found = &found[&name];
            if let Some(directory) = directory {
                // On other systems, a path with a drive letter is relative to the folder of the file.
                let found = found.directory.as_deref().unwrap_or_default();
                assert!(found.ends_with(&normalized(&directory)), "{path} {name}: {found}");
            }
            assert_eq!(
                found.start,
                start.iter().map(|it| normalized(it)).collect::<Vec<_>>(),
                "{path} {name}"
            );
            for (variable, value) in env {
                assert_eq!(found.env.get(&variable), Some(&normalized(&value)), "{path} {name} {variable}");
            }
        }
    }
}
