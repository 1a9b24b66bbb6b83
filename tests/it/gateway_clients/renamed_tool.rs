//! A tool is renamed while clients are connected.

use std::path::Path;

use mcp_testkit::program::binary;
use serde_json::{Value, json};

use super::{Gateway, Installed};

/// A shared server whose tools have this prefix.
fn save(folder: &Path, prefix: &str) -> String {
    let path = folder.join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!(
        "version: 1\nservers:\n  it:\n    {{truely-stateless: true, transport: stdio, command: '{}', args: \
         [demo-server], transform: [{{prefix: {prefix}_}}]}}\n",
        binary().display()
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The transport of the client.
#[derive(Debug, Clone, Copy)]
enum ClientTransport {
    Http,
    Stdio,
}

fn check(installed: &Installed, sdk: u8, mode: Option<&str>, transport: ClientTransport) {
    let folder = tempfile::tempdir().unwrap();
    let file = save(folder.path(), "old");
    let then = json!({"old": "old_echo", "new": "new_echo", "arguments": {"text": "a"}});
    let mut scenario =
        json!({"sdk": sdk, "mode": mode, "calls": [["old_echo", {"text": "a"}]], "then": then});
    let gateway = match transport {
        ClientTransport::Http => {
            let gateway = Gateway::start(folder.path(), &file, &[]);
            scenario["url"] = gateway.url().into();
            Some(gateway)
        }
        ClientTransport::Stdio => {
            scenario["command"] = json!([binary(), "serve", file, "--stdio"]);
            None
        }
    };
    let mut client = installed.typescript(&scenario);
    client.until_ready();
    save(folder.path(), "new");
    let said = client.json();
    let row = format!("SDK {sdk}, {mode:?}, {transport:?}");
    assert_eq!(said["answers"][0]["content"][0]["text"], "a", "{row}: {said:#}");
    let names = |tools: &Value| -> Vec<String> {
        tools.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let (before, after) = (names(&said["tools"]), names(&said["after"]["tools"]));
    assert!(before.iter().all(|name| name.starts_with("old_")), "{row}: {before:?}");
    let renamed: Vec<String> = before.iter().map(|it| it.replacen("old_", "new_", 1)).collect();
    assert_eq!(after, renamed, "{row}");
    let refused = said["after"]["old"]["error"].as_str().unwrap_or_default();
    assert!(refused.contains("Tool 'old_echo' not found"), "{row}: {said:#}");
    assert_eq!(said["after"]["new"]["content"][0]["text"], "a", "{row}: {said:#}");
    drop(gateway);
}

#[test]
fn dm_091_the_official_sdk_is_notified_of_a_renamed_tool() {
    let Some(installed) = Installed::ready() else { return };
    std::thread::scope(|scope| {
        for transport in [ClientTransport::Http, ClientTransport::Stdio] {
            for (sdk, mode) in [(1, None), (2, None), (2, Some("auto"))] {
                let installed = &installed;
                scope.spawn(move || check(installed, sdk, mode, transport));
            }
        }
    });
}
