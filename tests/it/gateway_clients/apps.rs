//! Apps (`ui://`): the official host library reads and runs those of official servers through `serve`, in both eras.

use std::fs;
use std::path::Path;

use mcp_testkit::program::{Run, root};
use serde_json::{Value, json};

use super::{Gateway, Installed};

/// What is served byte for byte: characters that JSON or HTML escapes, and both kinds of line ends.
const HTML: &str =
    "<!doctype html>\r\n<title>\u{e9}\u{2028}\\u0041 \"</script>\" \t\u{1f600}</title>\n<p>&amp;&lt;";

/// The `_meta` of the app of `app_server.mjs`.
fn app_meta() -> Value {
    json!({"ui": {
        "csp": {"connectDomains": ["https://api.example.org"], "resourceDomains": [],
            "frameDomains": ["https://*.example.org"]},
        "permissions": {"camera": {}, "clipboardWrite": {}},
        "domain": "report.example.org",
        "prefersBorder": false,
    }})
}

/// The settings of the extension.
fn apps() -> Value {
    json!({"mimeTypes": ["text/html;profile=mcp-app"]})
}

/// Servers with apps: `left`, `right` and `own` of this test with one URI, and the examples of the official library, of
/// which `one` and `two` are the same program; without those in `left_out`. Returns the path of the configuration.
fn write_configuration(installed: &Installed, folder: &Path, left_out: &[&str]) -> String {
    let node = installed.node();
    let own = |html: &str, era: &str, sharing: &str| {
        let file = folder.join(format!("{html}.html"));
        fs::write(&file, format!("{HTML}{html}")).unwrap();
        json!({
            "command": node.to_str(),
            "args": [root().join("tests/conformance/app_server.mjs"), file, era],
            "env": {"MCP_HOST_CONFORMANCE": installed.modules},
            "sharing": sharing,
        })
    };
    let example = |name: &str| {
        let script = installed.modules.join("@modelcontextprotocol").join(name).join("dist/index.js");
        json!({"command": node.to_str(), "args": [script, "--stdio"], "env": {"DEBUG_LOG_FILE": folder.join("log")}})
    };
    let mut servers = json!({
        "left": own("left", "both", "auto"),
        "right": own("right", "legacy", "auto"),
        "own": own("own", "legacy", "per-client"),
        "map": example("server-map"),
        "one": example("server-debug"),
        "two": example("server-debug"),
    });
    servers.as_object_mut().unwrap().retain(|name, _| !left_out.contains(&&**name));
    let file = folder.join("mcp.json");
    fs::write(&file, json!({"mcpServers": servers}).to_string()).unwrap();
    file.display().to_string()
}

fn run_host(installed: &Installed, url: &str, mode: &str, capabilities: &Value) -> Value {
    installed.script("app_client.mjs", &[url, mode, &capabilities.to_string()]).json()
}

/// The HTML of an example server.
fn example_html(installed: &Installed, name: &str) -> String {
    let file = installed.modules.join("@modelcontextprotocol").join(name).join("dist/mcp-app.html");
    fs::read_to_string(file).unwrap()
}

/// Checks that a tool leads to the app of its own server, which its app can read too.
#[track_caller]
fn check_app(seen: &Value, tool: &str, uri: &str, html: &str, meta: &Value) {
    let app = &seen["apps"][tool];
    let mut contents = json!([{"uri": uri, "mimeType": "text/html;profile=mcp-app", "text": html}]);
    if !meta.is_null() {
        contents[0]["_meta"] = meta.clone();
    }
    assert_eq!(app["uri"], uri, "{tool}");
    assert!(app["contents"] == contents, "{tool}: {:.2000}", app["contents"].to_string());
    assert!(app["app"]["contents"] == contents, "{tool}");
    let is_only = app["isAppOnly"].as_bool().unwrap();
    assert_eq!(is_only, tool.ends_with("refresh") || tool.ends_with("log"), "{tool}");
}

#[track_caller]
fn check(installed: &Installed, seen: &Value, version: &str) {
    assert_eq!(seen["version"], version);
    for (server, suffix) in
        [("left", ""), ("right", "#mcp-host-server=right"), ("own", "#mcp-host-server=own")]
    {
        let uri = format!("ui://report/app.html{suffix}");
        for tool in ["report", "refresh"] {
            let name = format!("{server}__{tool}");
            check_app(seen, &name, &uri, &format!("{HTML}{server}"), &app_meta());
            // The model's call, and that of the app.
            let result = &seen["apps"][&name]["app"];
            let text = json!({"tool": tool, "capability": apps()}).to_string();
            let want: Value = serde_json::from_str(&text).unwrap();
            for content in [&result["content"], &result["called"]] {
                let got: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
                assert_eq!(got, want, "{name}");
            }
        }
        let listed = seen["resources"].as_array().unwrap().iter().find(|it| it["uri"] == uri.as_str());
        assert_eq!(listed.unwrap()["_meta"], app_meta(), "{uri}");
        let tools = seen["tools"].as_array().unwrap();
        let report = tools.iter().find(|it| it["name"] == format!("{server}__report")).unwrap();
        assert_eq!(report["_meta"], json!({"ui": {"resourceUri": uri}, "example.org/x": [1]}));
        assert_eq!(seen["declared"][format!("{server}__report")], apps());
    }
    assert!(seen["appOnly"].get("content").is_some(), "{}", seen["appOnly"]);
    let debug = example_html(installed, "server-debug");
    for (server, suffix) in [("one", ""), ("two", "#mcp-host-server=two")] {
        let uri = format!("ui://debug-tool/mcp-app.html{suffix}");
        for tool in ["debug-tool", "debug-refresh", "debug-log"] {
            check_app(seen, &format!("{server}__{tool}"), &uri, &debug, &Value::Null);
        }
        let refreshed = &seen["apps"][format!("{server}__debug-refresh")]["app"]["called"][0]["text"];
        assert!(refreshed.as_str().unwrap().starts_with("Server timestamp: "), "{refreshed}");
    }
    let domains = json!(["https://*.openstreetmap.org", "https://cesium.com", "https://*.cesium.com"]);
    let meta = json!({"ui": {"csp": {"connectDomains": domains, "resourceDomains": domains}}});
    let map = example_html(installed, "server-map");
    check_app(seen, "map__show-map", "ui://cesium-map/mcp-app.html", &map, &meta);
    // An app calls a tool by the name that its server gives. Of several servers, it may mean any.
    let own = |tool: &str| &seen["apps"][tool]["app"]["own"];
    assert!(own("map__show-map")["content"][0]["text"].as_str().unwrap().starts_with("Displaying globe"));
    assert!(own("one__debug-refresh")["error"].as_str().unwrap().contains("debug-refresh"));
    assert_eq!(seen["apps"].as_object().unwrap().len(), 13);
}

#[test]
fn official_host_reads_and_runs_apps_of_several_servers() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = write_configuration(&installed, folder.path(), &[]);
    let gateway = Gateway::start(folder.path(), &file, &[]);
    let declared = json!({"extensions": {"io.modelcontextprotocol/ui": apps()}});
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let seen = run_host(&installed, &gateway.url(), mode, &declared);
        check(&installed, &seen, version);

        // Other clients: a server that knows its client receives that it has no apps. The client neither sees nor calls
        // tools that are for apps only.
        let all: Vec<Value> = seen["tools"].as_array().unwrap().clone();
        let seen = run_host(&installed, &gateway.url(), mode, &json!({}));
        let is_for_models = |it: &&Value| it["_meta"]["ui"]["visibility"] != json!(["app"]);
        let expected: Vec<&Value> = all.iter().filter(is_for_models).collect();
        assert_eq!((all.len() - expected.len(), json!(expected)), (7, seen["tools"].clone()), "{mode}");
        let message = "Tool 'right__refresh' is for apps only, and the client does not declare \
            `io.modelcontextprotocol/ui`";
        assert!(
            seen["appOnly"]["error"].as_str().is_some_and(|it| it.contains(message)),
            "{}",
            seen["appOnly"]
        );
        let want = json!({"left__report": null, "right__report": apps(), "own__report": null});
        assert_eq!(seen["declared"], want, "{mode}");

        // One server of several with the same tools: its app calls them by its own names.
        let seen = run_host(&installed, &format!("{}/two", gateway.url()), mode, &declared);
        let debug = example_html(&installed, "server-debug");
        let uri = "ui://debug-tool/mcp-app.html#mcp-host-server=two";
        check_app(&seen, "two__debug-tool", uri, &debug, &Value::Null);
        let refreshed = &seen["apps"]["two__debug-refresh"]["app"]["own"]["content"][0]["text"];
        assert!(refreshed.as_str().is_some_and(|it| it.starts_with("Server timestamp: ")), "{seen:.2000}");
    }
}

#[test]
fn commands_show_and_save_apps() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = write_configuration(&installed, folder.path(), &["left", "own"]);
    let run = |arguments: &[&str]| Run::new(folder.path(), folder.path(), arguments).finish();

    let listed = run(&["tools", &file, "--format", "json"]).json();
    let tool = |name: &str| listed["tools"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    let debug = "ui://debug-tool/mcp-app.html";
    assert_eq!(
        (&tool("one__debug-tool")["app"], tool("one__debug-tool").get("app_only")),
        (&json!(debug), None)
    );
    assert_eq!(tool("one__debug-log")["app_only"], true);
    assert_eq!((tool("map__geocode").get("app"), tool("map__geocode").get("app_only")), (None, None));
    // The commands declare that they support apps.
    assert_eq!(tool("right__refresh")["app_only"], true);
    let row = run(&["tools", &file, "debug-refresh", "--server", "two"]).stdout;
    assert!(row.contains("  app only  App-only tool"), "{row}");
    let one = run(&["tools", &file, "--schema", "debug-refresh", "--server", "two"]).stdout;
    assert!(one.contains(&format!("\napp {debug}; for apps only\n")), "{one}");
    // Models do not see tools that are for apps only.
    let provided = run(&["tools", &file, "--for", "anthropic", "--format", "json"]).json();
    let names: Vec<&str> =
        provided.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"one__debug-tool") && names.contains(&"right__report"), "{names:?}");
    assert!(!names.iter().any(|it| it.ends_with("refresh") || it.ends_with("log")), "{names:?}");

    let html = example_html(&installed, "server-debug");
    let save = ["resources", &file, "--read", debug, "--server", "two", "--save", "app.html"];
    let saved = run(&save);
    let length = html.len();
    assert_eq!(
        saved.stdout,
        format!("wrote app.html (text/html;profile=mcp-app, {length} bytes)\n"),
        "{saved:?}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("app.html")).unwrap(), html);
    let again = run(&save);
    assert_eq!(
        (again.code, &*again.stderr),
        (Some(1), "error: app.html exists\n  help: `--overwrite` replaces it\n")
    );
    let other = ["resources", &file, "--server", "right", "--read", "ui://report/app.html"];
    let replaced =
        run(&[&other[..], &["--save", "app.html", "--overwrite", "--format", "json"]].concat()).json();
    let want = json!({"path": "app.html", "mime_type": "text/html;profile=mcp-app", "bytes": HTML.len() + 5});
    assert_eq!(replaced, want);
    assert_eq!(fs::read_to_string(folder.path().join("app.html")).unwrap(), format!("{HTML}right"));
    assert!(run(&other).stdout.contains("<p>&amp;&lt;right\n"));
    let ambiguous = run(&["resources", &file, "--read", debug, "--save", "other.html"]);
    assert_eq!(ambiguous.code, Some(1));
    assert!(ambiguous.stderr.contains("name one of the servers 'one', 'two'"), "{}", ambiguous.stderr);
    assert!(!folder.path().join("other.html").exists());
}
