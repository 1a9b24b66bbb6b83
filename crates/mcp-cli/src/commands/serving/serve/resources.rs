//! The resources of this process: free memory and file descriptors.
//!
//! The memory is read from `/proc` and the process's control group. On other systems than Linux it is unknown.

use mcp_host_gateway::ProcessResources;
use mcp_host_transport::raise_descriptor_limit;

use crate::runtime::run_blocking;

/// Reads the resources.
pub(super) async fn read_resources() -> ProcessResources {
    run_blocking(|| {
        let mut resources = ProcessResources::default();
        // The limit was raised before; this returns it.
        resources.descriptors = raise_descriptor_limit().ok();
        resources.memory_bytes = read_free_memory();
        resources
    })
    .await
}

/// The memory that this process can still get: what is free of the machine, or of its control group.
#[cfg(target_os = "linux")]
fn read_free_memory() -> Option<u64> {
    use procfs::Current;

    let machine = procfs::Meminfo::current().ok().and_then(|memory| memory.mem_available);
    machine.into_iter().chain(read_free_group_memory()).min()
}

#[cfg(not(target_os = "linux"))]
fn read_free_memory() -> Option<u64> {
    None
}

/// The memory that the control group of this process and the groups above it can still get. A group may use all memory
/// of its limit, so the smallest limit counts.
#[cfg(target_os = "linux")]
fn read_free_group_memory() -> Option<u64> {
    use std::path::Path;

    let groups = procfs::process::Process::myself().and_then(|process| process.cgroups()).ok()?;
    let group = groups.0.into_iter().find(|group| group.hierarchy == 0)?;
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(group.pathname.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|path| path.starts_with(root));
    let limits = groups.filter_map(|path| std::fs::read_to_string(path.join("memory.max")).ok());
    limits.filter_map(|limit| limit.trim().parse().ok()).min()
}
