//! Results that exceed the size limit, and results that do not match the tool's output schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_host_runtime::{DialogId, HostOptions, SpillPolicy, Supervision};
use mcp_testkit::servers::configured_server;
use serde_json::json;

use crate::fixture::{HostFixture, text_or_error};
use crate::scripted_server::ScriptedServer;

async fn fixture(directory: &Path, peer: Arc<ScriptedServer>) -> HostFixture {
    let spill = Some(SpillPolicy::in_directory(directory));
    let mut options = HostOptions::default();
    options.supervision = Supervision::Off;
    options.spill = spill;
    HostFixture::with(&[("a", peer)], options).started().await
}

/// Returns the files in all folders of `directory`.
fn files(directory: &Path) -> Vec<PathBuf> {
    let inside = |it: &Path| std::fs::read_dir(it).unwrap().map(|it| it.unwrap().path()).collect::<Vec<_>>();
    inside(directory).iter().flat_map(|it| inside(it)).collect()
}

#[tokio::test]
async fn hd_133_result_over_the_limit_is_written_to_the_named_file() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture(folder.path(), ScriptedServer::new(&["big", "echo"])).await;
    assert_eq!(text_or_error(&fixture.call("echo", "{}").await), "{}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let text = fixture.call("big", "{}").await.text();
    let [path] = files(folder.path()).try_into().unwrap();
    let want =
        format!("é\n[137856 more bytes of this text are left out; all of it is in {}]", path.display());
    assert!(text.starts_with("éééé") && text.ends_with(&want), "{}", &text[text.len() - 200..]);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "é".repeat(200_000));
    // The files are removed with the host, even if a dialog or turn still exists.
    let (dialog, turn) = (fixture.host.dialog(DialogId::new("d")), fixture.host.pin());
    fixture.host.shutdown().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    drop((dialog, turn));
}

#[tokio::test]
async fn hd_133_dropped_host_deletes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture(folder.path(), ScriptedServer::new(&["big"])).await;
    fixture.call("big", "{}").await;
    let turn = fixture.host.pin();
    assert_eq!(files(folder.path()).len(), 1);
    drop(fixture);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(turn);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn hd_133_next_host_deletes_the_files_of_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    let first = fixture(folder.path(), ScriptedServer::new(&["big"])).await;
    first.call("big", "{}").await;
    // The folder of a running host, and one of an earlier process with our process id.
    let living = files(folder.path()).remove(0).parent().unwrap().to_owned();
    let name = living.file_name().unwrap().to_str().unwrap();
    let parts: Vec<&str> = name.split('-').collect();
    let ["mcp", "host", id, _, world_of, _] = parts[..] else { panic!("{name}") };
    let left = folder.path().join(format!("mcp-host-{id}-1-{world_of}-left"));
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("result.txt"), "x").unwrap();
    let second = fixture(folder.path(), ScriptedServer::new(&["big"])).await;
    while left.exists() {
        tokio::task::yield_now().await;
    }
    assert_eq!(files(&living.join("..")).len(), 1, "nothing of a living host's is touched");
    drop((first, second));
}

#[tokio::test]
async fn hd_133_unwritable_result_is_truncated_and_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    std::fs::write(&place, "a file where a folder should be").unwrap();
    let fixture = fixture(&place, ScriptedServer::new(&["big"])).await;
    let mut published = fixture.host.subscribe();
    let result = fixture.call("big", "{}").await;
    assert!(result.text().ends_with("é\n[137856 more bytes of this text are left out]"));
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert_eq!(problems[0].problem.id, "mcp/spill_failed");
    let want =
        format!("large results are cut, because they cannot be written to files: {}: ", place.display());
    assert!(problems[0].problem.message.starts_with(&want), "{}", problems[0].problem.message);
    std::fs::remove_file(&place).unwrap();
    assert!(fixture.call("big", "{}").await.text().ends_with(".txt]"));
    published.wait_for(|it| it.problems.is_empty()).await.unwrap();
}

#[tokio::test]
async fn hd_133_result_over_the_disk_limit_is_truncated_without_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Some({
        let mut policy = SpillPolicy::in_directory(folder.path().to_owned());
        policy.max_bytes = 1000;
        policy
    });
    let mut options = HostOptions::default();
    options.supervision = Supervision::Off;
    options.spill = spill;
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["big"]))], options).started().await;
    let result = fixture.call("big", "{}").await;
    assert!(result.text().ends_with("é\n[137856 more bytes of this text are left out]"));
    assert!(fixture.host.snapshot().problems.is_empty());
}

fn promising() -> Arc<ScriptedServer> {
    let peer = ScriptedServer::new(&[]);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tool = |name: &str, output: serde_json::Value| {
        json!({"name": name, "inputSchema": {"type": "object"},
        "outputSchema": output})
    };
    *peer.tools.lock().unwrap() =
        vec![tool("structured", schema.clone()), tool("unstructured", schema.clone()), tool("fail", schema)];
    peer
}

#[tokio::test(start_paused = true)]
async fn hd_102_result_that_violates_its_schema_has_a_warning() {
    let fixture = HostFixture::running(&[("a", promising())]).await;
    let mut published = fixture.host.subscribe();
    let good = fixture.call("structured", r#"{"n": 1}"#).await;
    assert!(good.success && good.metadata.warnings.is_empty() && fixture.host.snapshot().problems.is_empty());

    let bad = fixture.call("structured", r#"{"n": "secret"}"#).await;
    assert!(bad.success);
    assert_eq!(bad.metadata.structured_content.unwrap().as_str(), r#"{"n":"secret"}"#);
    let why = "/n: value is not of type \"integer\"";
    let warning = format!("the structured content does not fit the tool's output schema: {why}");
    assert_eq!(bad.metadata.warnings, [warning]);
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert_eq!(problems[0].problem.id, "mcp/server/a/tool_result_invalid/structured");
    assert!(problems[0].problem.message.ends_with(why), "{}", problems[0].problem.message);

    // The next valid result withdraws the problem.
    fixture.call("structured", r#"{"n": 2}"#).await;
    published.wait_for(|it| it.problems.is_empty()).await.unwrap();

    let none = fixture.call("unstructured", "{}").await;
    assert_eq!(text_or_error(&none), "no structure");
    assert_eq!(none.metadata.warnings.len(), 1, "{:?}", none.metadata.warnings);
    // The result of a failed call is not checked.
    assert!(fixture.call("fail", "{}").await.metadata.warnings.is_empty());
}

#[tokio::test(start_paused = true)]
async fn hd_102_unusable_output_schema_does_not_affect_results() {
    let peer = promising();
    peer.tools.lock().unwrap()[0]["outputSchema"]["properties"]["n"] = json!({"type": "sausage"});
    let fixture = HostFixture::running(&[("a", peer)]).await;
    let mut published = fixture.host.subscribe();
    let result = fixture.call("structured", r#"{"n": 1}"#).await;
    assert!(result.success && result.metadata.warnings.is_empty());
    assert_eq!(result.metadata.structured_content.unwrap().as_str(), r#"{"n":1}"#);
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert_eq!(problems[0].problem.id, "mcp/server/a/tool_result_unvalidated/structured");
}

#[tokio::test(start_paused = true)]
async fn hd_102_result_is_validated_before_truncation() {
    let fixture = HostFixture::running(&[("a", promising())]).await;
    let mut brief = configured_server("a");
    brief.spec.limits.result_bytes = 1;
    fixture.apply(vec![brief]).await;
    let cut = fixture.call("structured", r#"{"n": 1}"#).await;
    assert!(cut.metadata.structured_content.is_none() && cut.metadata.warnings.is_empty());
}
