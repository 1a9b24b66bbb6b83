//! Followed configuration files on a real file system: the host runs their content, whichever way they are saved.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_host_runtime::{FollowEvent, FollowHandle, FollowRequest, LoadRequest, WatchMode};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::fixture::HostFixture;
use crate::scripted_server::ScriptedServer;

/// A host that follows `.minds/mcp.yaml` in a folder, with peers `a`, `b` and `c`.
struct FollowedFolder {
    folder: TempDir,
    fixture: HostFixture,
    following: FollowHandle,
}

/// Returns the text of a configuration. In `a b=2 c! d-`, `b` has other arguments, `c` is invalid and `d` is disabled.
fn dominds(words: &str) -> String {
    let mut res = "version: 1\nservers:\n".to_owned();
    for word in words.split_whitespace() {
        let (id, revision) = word.split_once('=').unwrap_or((word.trim_end_matches(['!', '-', '~']), "1"));
        let command = if word.ends_with('!') { "comand" } else { "command" };
        let rest = match word.chars().last() {
            Some('-') => ", enabled: false",
            Some('~') => ", transform: [{suffix: _x}]",
            Some(_) | None => "",
        };
        res.push_str(&format!("  {id}: {{transport: stdio, {command}: npx, args: ['{revision}']{rest}}}\n"));
    }
    res
}

impl FollowedFolder {
    async fn new() -> FollowedFolder {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".minds/mcp.yaml");
        FollowedFolder::following(folder, vec![LoadRequest::new(path)]).await
    }

    async fn following(folder: TempDir, files: Vec<LoadRequest>) -> FollowedFolder {
        let fixture = HostFixture::new(&["a", "b", "c"].map(|it| (it, ScriptedServer::new(&[tool(it)]))));
        let following = fixture.host.follow(FollowRequest::new(files)).await;
        FollowedFolder { folder, fixture, following }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Waits until the host has this state, these problems, and these numbers of connections so far to `a`, `b`
    /// and `c`.
    async fn until(&self, want: &str, problems: &[&str], connected: [usize; 3]) {
        let now = || {
            let problems = self.fixture.host.snapshot().problems.clone();
            let ids: Vec<String> = problems.into_iter().map(|it| it.problem.id).collect();
            let connected = ["a", "b", "c"].map(|it| self.fixture.peer(it).count("connect"));
            format!("{} {ids:?} {connected:?}", self.fixture.summary())
        };
        let want = format!("{want} {problems:?} {connected:?}");
        let begun = Instant::now();
        while now() != want {
            assert!(begun.elapsed() < Duration::from_secs(600), "{} is not {want}", now());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the next event that is not a change of the watch mode, as text.
    async fn event(&mut self) -> String {
        loop {
            match self.following.next().await.unwrap() {
                FollowEvent::Reloaded(it) => {
                    let names = |ids: &[mcp_host_model::ServerId]| {
                        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
                    };
                    let plan = it.plan;
                    let shadowed = it.shadowed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                    return format!(
                        "reloaded {}: +[{}] -[{}] *[{}] {} {shadowed}",
                        it.files.len(),
                        names(&plan.added),
                        names(&plan.removed),
                        names(&plan.changed),
                        it.files.iter().map(|it| it.diagnostics.len()).sum::<usize>()
                    );
                }
                FollowEvent::Refused(it) => return format!("refused: {}", it.error),
                FollowEvent::WatchModeChanged(WatchMode::System) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Returns the one tool of a peer.
fn tool(id: &str) -> &'static str {
    match id {
        "a" => "ta",
        "b" => "tb",
        _ => "tc",
    }
}

const FILE: &str = ".minds/mcp.yaml";
const BROKEN: &str = "version: 1\nservers: {a\n";
const CONFIG_ERROR: &str = "mcp/workspace_config_error";

#[tokio::test(start_paused = true)]
async fn dm_090_to_dm_110_each_edit_changes_only_what_it_names() {
    let place = FollowedFolder::new().await;
    place.until("|", &[], [0, 0, 0]).await;
    // DM-092: the folder is created after following has started.
    place.write(FILE, &dominds("a"));
    place.until("a:ready | ta", &[], [1, 0, 0]).await;
    place.write(FILE, &dominds("a b"));
    place.until("a:ready b:ready | ta tb", &[], [1, 1, 0]).await;
    // DM-110: changed names and filters restart no server.
    place.write(FILE, &dominds("a~ b"));
    place.until("a:ready b:ready | ta_x tb", &[], [1, 1, 0]).await;
    place.write(FILE, &dominds("a~ b=2"));
    place.until("a:ready b:ready | ta_x tb", &[], [1, 2, 0]).await;
    place.write(FILE, &dominds("b=2 c a-"));
    place.until("b:ready c:ready | tb tc", &[], [1, 2, 1]).await;
    assert_eq!(place.fixture.peer("a").open(), 0);
    // DM-105, DM-122: an invalid entry affects only its own server, which keeps running.
    place.write(FILE, &dominds("b! c a"));
    let failed = "mcp/server/b/server_error";
    place.until("c:ready a:ready b:ready | tc ta tb", &[failed], [2, 2, 1]).await;
    // DM-121: a file that is not YAML changes nothing.
    place.write(FILE, BROKEN);
    place.until("c:ready a:ready b:ready | tc ta tb", &[CONFIG_ERROR, failed], [2, 2, 1]).await;
    // DM-124: the problem disappears when the file is corrected.
    place.write(FILE, &dominds("a b=2 c"));
    place.until("a:ready b:ready c:ready | ta tb tc", &[], [2, 2, 1]).await;
    // DM-094: deleting the file stops its servers.
    std::fs::remove_file(place.path(FILE)).unwrap();
    place.until("|", &[], [2, 2, 1]).await;
    place.write(FILE, &dominds("a"));
    place.until("a:ready | ta", &[], [3, 2, 1]).await;
    std::fs::remove_dir_all(place.path(".minds")).unwrap();
    place.until("|", &[], [3, 2, 1]).await;
    place.write(FILE, &dominds("b"));
    place.until("b:ready | tb", &[], [3, 3, 1]).await;
}

/// Checks one way to save a file. `save` replaces the content of the path by the text; it is called twice.
async fn check(save: impl AsyncFn(&Path, &str)) {
    let place = FollowedFolder::new().await;
    place.write(FILE, &dominds("a"));
    place.until("a:ready | ta", &[], [1, 0, 0]).await;
    let path = place.path(FILE);
    save(&path, &dominds("a b")).await;
    place.until("a:ready b:ready | ta tb", &[], [1, 1, 0]).await;
    save(&path, &dominds("a c")).await;
    place.until("a:ready c:ready | ta tc", &[], [1, 1, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn dm_092_save_by_rename() {
    check(async |path, text| {
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dm_092_save_after_moving_the_file_away() {
    check(async |path, text| {
        std::fs::rename(path, path.with_extension("yaml~")).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        std::fs::write(path, text).unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dm_092_save_after_truncating() {
    check(async |path, text| {
        std::fs::write(path, "").unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        std::fs::write(path, text).unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dm_092_save_by_replacing_the_folder() {
    check(async |path, text| {
        let folder = path.parent().unwrap();
        std::fs::rename(folder, folder.with_extension("old")).unwrap();
        std::fs::create_dir(folder).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::remove_dir_all(folder.with_extension("old")).unwrap();
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn dm_092_save_by_changing_a_symbolic_link() {
    let mounted = std::sync::atomic::AtomicUsize::new(0);
    check(async |path, text| {
        let folder = path.parent().unwrap();
        let version = format!("..{}", mounted.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        std::fs::create_dir(folder.join(&version)).unwrap();
        std::fs::write(folder.join(&version).join("mcp.yaml"), text).unwrap();
        std::os::unix::fs::symlink(&version, folder.join("..data_tmp")).unwrap();
        std::fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        if !path.is_symlink() {
            std::fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("..data/mcp.yaml", path).unwrap();
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn events_report_reloads_and_refused_files() {
    let mut place = FollowedFolder::new().await;
    assert_eq!(place.event().await, "reloaded 1: +[] -[] *[] 0 ");
    place.write(FILE, &dominds("a b c!"));
    // Two diagnostics: the unknown key, and the required key that is missing.
    assert_eq!(place.event().await, "reloaded 1: +[a b] -[] *[] 2 ");
    place.write(FILE, BROKEN);
    let refused = place.event().await;
    assert!(
        refused.starts_with("refused: ConfigError: ") && refused.contains(" has 1 error and is not used"),
        "{refused}"
    );
    assert!(refused.ends_with("; its previous content remains in effect"), "{refused}");
    // Saving the same content again causes no event.
    place.write(FILE, BROKEN);
    place.write(FILE, &dominds("a=2"));
    assert_eq!(place.event().await, "reloaded 1: +[] -[b] *[a] 0 ");
    place.fixture.host.shutdown().await;
    assert!(place.following.next().await.is_none());
}

const HOLODECK: &str = "\
name: a
tools:
  - {name: b, description: d, type: mcp, server: x, command: npx, envFile: b.env}
  - {name: c, description: d, type: mcp, server: x, command: npx}
";

#[tokio::test(start_paused = true)]
async fn hd_058_hd_134_referenced_files_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.yaml"), HOLODECK).unwrap();
    std::fs::write(folder.path().join("b.env"), "TOKEN=1\n").unwrap();
    let path = folder.path().join("agent.yaml");
    let place = FollowedFolder::following(folder, vec![LoadRequest::new(path)]).await;
    place.until("b:ready c:ready | b__tb c__tc", &[], [0, 1, 1]).await;
    place.write("b.env", "TOKEN=2\n");
    place.until("b:ready c:ready | b__tb c__tc", &[], [0, 2, 1]).await;
    // In HoloDeck, one error refuses the whole file.
    std::fs::remove_file(place.path("b.env")).unwrap();
    place.until("b:ready c:ready | b__tb c__tc", &[CONFIG_ERROR], [0, 2, 1]).await;
    place.write("agent.yaml", &HOLODECK.replace("name: c", "name: a").replace("envFile", "envFiel"));
    place.until("b:ready c:ready | b__tb c__tc", &[CONFIG_ERROR], [0, 2, 1]).await;
    place.write("agent.yaml", &HOLODECK.replace(", envFile: b.env", ""));
    place.until("b:ready c:ready | b__tb c__tc", &[], [0, 3, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn editor_files_are_watched() {
    const FILE: &str = ".cursor/mcp.json";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let place = FollowedFolder::following(folder, vec![LoadRequest::new(path)]).await;
    let json = |entries: &str| format!("{{\"mcpServers\": {{{entries}}}}}");
    let [a, b] = ["a", "b"].map(|it| format!(r#""{it}": {{"command": "npx", "args": ["1"]}}"#));
    place.write(FILE, &json(&a));
    place.until("a:ready | a__ta", &[], [1, 0, 0]).await;
    place.write(FILE, &json(&format!("{a}, // and\n{b}")));
    place.until("a:ready b:ready | a__ta b__tb", &[], [1, 1, 0]).await;
    place.write(FILE, &json(&format!("{a}, {}", b.replace("\"1\"", "\"2\""))));
    place.until("a:ready b:ready | a__ta b__tb", &[], [1, 2, 0]).await;
    place.write(FILE, "{\"mcpServers\": {");
    place.until("a:ready b:ready | a__ta b__tb", &[CONFIG_ERROR], [1, 2, 0]).await;
    place.write(FILE, &json(&b.replace("\"1\"", "\"2\"")));
    place.until("b:ready | b__tb", &[], [1, 2, 0]).await;
    // Its servers stay, with a problem (RPT-190).
    std::fs::remove_file(place.path(FILE)).unwrap();
    place.until("b:ready | b__tb", &[CONFIG_ERROR], [1, 2, 0]).await;
}

#[tokio::test(start_paused = true)]
async fn project_file_takes_precedence_over_the_user_file() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["project/.minds/mcp.yaml", "user/.minds/mcp.yaml"]
        .map(|it| LoadRequest::new(folder.path().join(it)));
    let mut place = FollowedFolder::following(folder, files.to_vec()).await;
    place.write("user/.minds/mcp.yaml", &dominds("a b"));
    place.until("a:ready b:ready | ta tb", &[], [1, 1, 0]).await;
    assert_eq!(place.event().await, "reloaded 2: +[] -[] *[] 0 ");
    assert_eq!(place.event().await, "reloaded 1: +[a b] -[] *[] 0 ");
    place.write("project/.minds/mcp.yaml", &dominds("c b=2"));
    let shadowed = |id: &str| format!("mcp/server/{id}/server_shadowed");
    place.until("c:ready b:ready a:ready | tc tb ta", &[&shadowed("b")], [1, 2, 1]).await;
    let event = place.event().await.replace(&format!("{}/", place.folder.path().display()), "");
    assert_eq!(
        event,
        "reloaded 1: +[c] -[] *[b] 0 server 'b' of user/.minds/mcp.yaml is shadowed by that of \
         project/.minds/mcp.yaml, which takes precedence"
    );
    // A server that is disabled in the first file does not run from the second one.
    place.write("project/.minds/mcp.yaml", &dominds("c a-"));
    place.until("c:ready b:ready | tc tb", &[&shadowed("a")], [1, 3, 1]).await;
    let problems = place.fixture.host.snapshot().problems.clone();
    assert!(problems[0].problem.message.starts_with("server 'a' of "), "{}", problems[0].problem.message);
    // The problem lasts as long as its cause.
    place.write("project/.minds/mcp.yaml", &dominds("c"));
    place.until("c:ready a:ready b:ready | tc ta tb", &[], [2, 3, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_the_watch_keeps_the_configuration() {
    let place = FollowedFolder::new().await;
    place.write(FILE, &dominds("a"));
    place.until("a:ready | ta", &[], [1, 0, 0]).await;
    place.write(FILE, BROKEN);
    place.until("a:ready | ta", &[CONFIG_ERROR], [1, 0, 0]).await;
    let FollowedFolder { folder, fixture, following } = place;
    following.stop().await;
    assert!(fixture.host.snapshot().problems.is_empty());
    std::fs::remove_file(folder.path().join(FILE)).unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(fixture.summary(), "a:ready | ta");
    // Dropping the handle also stops following. A new one reads the current state first.
    drop(fixture.host.follow(FollowRequest::new(vec![LoadRequest::new(folder.path().join(FILE))])).await);
    assert_eq!(fixture.summary(), "|");
    std::fs::write(folder.path().join(FILE), dominds("a")).unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(fixture.summary(), "|");
}
