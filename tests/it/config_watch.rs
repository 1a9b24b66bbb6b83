//! A host that watches its file, with real servers: every way of saving is noticed.
//!
//! Polling is disabled to test the file events of the system.

use std::os::unix::fs::symlink;
use std::time::Duration;

use mcp_host_runtime::HostSnapshot;
use mcp_testkit::process::is_alive;

use crate::watched_host::{File, Server, WatchedHost, server};

/// A polling interval that never elapses, so that only events are noticed.
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dm_091_dm_092_dm_110_every_way_of_saving_is_noticed() {
    let place = WatchedHost::new(NEVER, Duration::from_millis(500)).await;
    let (a, b, c) = (server('a'), server('b'), server('c'));
    let path = place.path(File::Project);
    let folder = path.parent().unwrap().to_owned();
    // The folder is created later.
    place.save(File::Project, &[a]);
    place.runs(&[a]).await;
    let first = place.pids('a');
    place.save(File::Project, &[a, b]);
    place.runs(&[a, b]).await;
    let hash = place.host.snapshot().catalog.hash();
    // A change of names or filters restarts no server.
    let renamed = Server { names: 1, ..b };
    place.save(File::Project, &[a, renamed]);
    place.runs(&[a, renamed]).await;
    assert_eq!(place.pids('b').len(), 1);
    let changed = Server { connection: 1, ..renamed };
    place.save(File::Project, &[a, changed]);
    place.until("changed", |_| place.pids('b').len() == 2).await;
    place.runs(&[a, changed]).await;
    // Replaced by a rename.
    place.rename_over(File::Project, &[a, c]);
    place.runs(&[a, c]).await;
    place.rename_over(File::Project, &[a]);
    place.runs(&[a]).await;
    // Invalid, then repaired.
    std::fs::write(&path, "version: 1\nservers: {a\n").unwrap();
    let is_broken =
        |it: &HostSnapshot| it.problems.iter().any(|it| it.problem.id == "mcp/workspace_config_error");
    place.until("broken", is_broken).await;
    assert!(place.call("a0_echo").await.success);
    place.save(File::Project, &[a, c]);
    place.runs(&[a, c]).await;
    // Emptied, then written.
    std::fs::write(&path, "").unwrap();
    tokio::time::sleep(Duration::from_millis(250)).await;
    place.save(File::Project, &[a, b]);
    place.runs(&[a, b]).await;
    assert_eq!(place.host.snapshot().catalog.hash(), hash);
    // A symlink with a new target, as in a mounted ConfigMap.
    for (version, servers) in [("..1", &[a][..]), ("..2", &[a, c]), ("..3", &[a, b])] {
        std::fs::create_dir(folder.join(version)).unwrap();
        std::fs::write(folder.join(version).join("mcp.yaml"), place.text(servers)).unwrap();
        symlink(version, folder.join("..data_tmp")).unwrap();
        std::fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        if !path.is_symlink() {
            symlink("..data/mcp.yaml", folder.join("link")).unwrap();
            std::fs::rename(folder.join("link"), &path).unwrap();
        }
        place.runs(servers).await;
    }
    // No process was restarted until here.
    assert_eq!(place.pids('a'), first);
    assert!(is_alive(first[0]));
    // Deleted with its folder, then created again.
    std::fs::remove_dir_all(&folder).unwrap();
    place.runs(&[]).await;
    place.save(File::Project, &[a, b]);
    place.runs(&[a, b]).await;
    assert_eq!(place.host.snapshot().catalog.hash(), hash);
    // Deleted alone, and made anew.
    std::fs::remove_file(&path).unwrap();
    place.runs(&[]).await;
    place.save(File::Project, &[b]);
    place.runs(&[b]).await;
    place.end().await;
}
