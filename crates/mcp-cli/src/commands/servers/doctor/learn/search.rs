//! Searches the smallest sandbox in which a server works.
//!
//! A sandbox is a set of permissions. The search starts with all of them, leaves out what is not needed, and replaces a
//! folder by those of its entries that are needed. Each decision is a start of the server. If there are too many, the
//! search ends with a sandbox that is larger than necessary.

use std::path::{Path, PathBuf};

use mcp_host_model::{Sandbox, SandboxPreset};

/// The maximum number of starts.
const MAX_STARTS: usize = 300;

/// The maximum number of entries of a folder that are tried one by one.
const MAX_ENTRIES: usize = 4096;

/// The maximum number of needed entries that replace their folder. A folder with more, such as one of packages, is
/// allowed as a whole.
const MAX_PARTS: usize = 3;

/// The ports of names of hosts and of the web.
const WEB_PORTS: [u16; 3] = [53, 443, 80];

/// What a sandbox allows beyond the preset `project`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Permission {
    /// The whole network.
    Network,
    /// Connections to a TCP port.
    Port(u16),
    /// Writing and reading a file or folder.
    Write(PathBuf),
    /// Reading a file or folder.
    Read(PathBuf),
    /// A variable of the host.
    Variable(String),
}

/// What the search asks.
pub(super) struct Search<Works, Entries> {
    /// Whether the server works in a sandbox.
    works: Works,
    /// The entries of a folder; none for a file.
    entries: Entries,
    starts: usize,
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) permissions: Vec<Permission>,
    pub(super) starts: usize,
    /// Whether nothing of it can be left out. Otherwise the number of starts was too large.
    pub(super) is_smallest: bool,
}

/// The sandbox with these permissions.
pub(super) fn sandbox(permissions: &[Permission]) -> Sandbox {
    let has_network = permissions.contains(&Permission::Network);
    let preset = if has_network { SandboxPreset::Network } else { SandboxPreset::Project };
    let mut res = Sandbox::new(preset);
    for permission in permissions {
        match permission {
            Permission::Network => {}
            Permission::Port(port) => res.ports.push(*port),
            Permission::Write(path) => res.write.push(path.display().to_string()),
            Permission::Read(path) => res.read.push(path.display().to_string()),
            Permission::Variable(name) => res.env.push(name.clone()),
        }
    }
    res
}

/// Everything that a sandbox can allow.
pub(super) fn all_permissions(variables: Vec<String>) -> Vec<Permission> {
    let root = || PathBuf::from("/");
    let mut res = vec![Permission::Network, Permission::Write(root()), Permission::Read(root())];
    res.extend(variables.into_iter().map(Permission::Variable));
    res
}

impl<Works, Entries> Search<Works, Entries>
where
    Works: AsyncFnMut(&Sandbox) -> bool,
    Entries: Fn(&Path) -> Vec<PathBuf>,
{
    pub(super) fn new(works: Works, entries: Entries) -> Search<Works, Entries> {
        Search { works, entries, starts: 0 }
    }

    /// Searches from these permissions, with which the server works.
    pub(super) async fn run(mut self, all: Vec<Permission>) -> Learned {
        let mut open = self.needed(&[], all, usize::MAX).await.unwrap_or_default();
        let mut done: Vec<Permission> = Vec::new();
        while let Some(permission) = open.pop() {
            let others: Vec<Permission> = done.iter().chain(&open).cloned().collect();
            let weaker = self.weaker(&permission);
            let is_enough = !weaker.is_empty() && self.is_enough(&others, &weaker).await;
            let needed = if is_enough { self.needed(&others, weaker, MAX_PARTS).await } else { None };
            match needed {
                Some(needed) => open.extend(needed),
                None => done.push(permission),
            }
        }
        // Writing includes reading.
        for index in 0..done.len() {
            if let Permission::Write(path) = &done[index] {
                let mut weaker = done.clone();
                weaker[index] = Permission::Read(path.clone());
                if self.is_enough(&weaker, &[]).await {
                    done = weaker;
                }
            }
        }
        let permissions = self.needed(&[], done, usize::MAX).await.unwrap_or_default();
        Learned { permissions, starts: self.starts, is_smallest: self.starts < MAX_STARTS }
    }

    /// Whether the server works with these permissions. Not, if there were too many starts.
    async fn is_enough(&mut self, some: &[Permission], others: &[Permission]) -> bool {
        if self.starts >= MAX_STARTS {
            return false;
        }
        self.starts += 1;
        let all: Vec<Permission> = some.iter().chain(others).cloned().collect();
        (self.works)(&sandbox(&all)).await
    }

    /// Leaves out the permissions that are not needed beside `others`: first many at once, then each. Returns `None` if
    /// more than `max` are needed.
    async fn needed(
        &mut self,
        others: &[Permission],
        mut items: Vec<Permission>,
        max: usize,
    ) -> Option<Vec<Permission>> {
        if items.is_empty() || self.is_enough(others, &[]).await {
            return Some(Vec::new());
        }
        let mut size = items.len().div_ceil(2);
        loop {
            let mut at = 0;
            while at < items.len() {
                let mut rest = items.clone();
                rest.drain(at..items.len().min(at + size));
                // Without any is known not to be enough.
                if !rest.is_empty() && self.is_enough(others, &rest).await {
                    items = rest;
                } else {
                    at += size;
                }
            }
            // Each part of this size has a permission that is needed.
            if items.len().div_ceil(size) > max {
                return None;
            }
            if size == 1 {
                return Some(items);
            }
            size = size.div_ceil(2);
        }
    }

    /// The permissions that together allow less, and may be enough.
    fn weaker(&self, permission: &Permission) -> Vec<Permission> {
        let entries = |path: &Path, allow: fn(PathBuf) -> Permission| {
            let entries = (self.entries)(path);
            let is_small = entries.len() <= MAX_ENTRIES;
            if is_small { entries.into_iter().map(allow).collect() } else { Vec::new() }
        };
        match permission {
            Permission::Network => WEB_PORTS.map(Permission::Port).into(),
            Permission::Write(path) => entries(path, Permission::Write),
            Permission::Read(path) => entries(path, Permission::Read),
            Permission::Port(_) | Permission::Variable(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of a small disk.
    fn entries(folder: &Path) -> Vec<PathBuf> {
        let names: &[&str] = match folder.to_str().unwrap() {
            "/" => &["bin", "home", "many", "srv", "tmp"],
            "/srv" => &["data", "other"],
            "/srv/data" => &["a", "b"],
            "/home" => &["u"],
            "/many" => &["a", "b", "c", "d", "e"],
            _ => &[],
        };
        names.iter().map(|it| folder.join(it)).collect()
    }

    fn is_covered(path: &str, folders: &[String]) -> bool {
        folders.iter().any(|it| Path::new(path).starts_with(it))
    }

    /// Searches for a server that needs this, and returns the sandbox as text.
    async fn learn(works: impl Fn(&Sandbox) -> bool) -> (String, bool) {
        let variables = ["A", "B", "C", "D"].map(str::to_owned).to_vec();
        let search = Search::new(async |it: &Sandbox| works(it), entries);
        let learned = search.run(all_permissions(variables)).await;
        (sandbox(&learned.permissions).to_string(), learned.is_smallest)
    }

    fn reads(path: &str) -> impl Fn(&Sandbox) -> bool + '_ {
        move |it| is_covered(path, &it.read) || is_covered(path, &it.write)
    }

    // RPT-317
    #[tokio::test]
    async fn rpt_317_search_finds_what_is_needed_and_nothing_else() {
        let check = async |works: &dyn Fn(&Sandbox) -> bool, want: &str| {
            assert_eq!(learn(works).await, (want.to_owned(), true));
        };
        check(&|_| true, "project, has no network").await;
        check(&reads("/srv/data/a"), "project, may read /srv/data/a, has no network").await;
        // A listing needs the folder itself.
        check(&reads("/srv/data"), "project, may read /srv/data, has no network").await;
        let many = |it: &Sandbox| ["a", "b", "c", "d"].iter().all(|name| reads(&format!("/many/{name}"))(it));
        check(&many, "project, may read /many, has no network").await;
        let two = |it: &Sandbox| reads("/srv/data/b")(it) && reads("/home/u")(it);
        check(&two, "project, may read /srv/data/b /home/u, has no network").await;
        let write = |it: &Sandbox| is_covered("/srv/data/a", &it.write) && reads("/srv/data/b")(it);
        check(&write, "project, may read /srv/data/b, may write /srv/data/a, has no network").await;
        let has_port = |it: &Sandbox| it.preset == SandboxPreset::Network || it.ports.contains(&443);
        check(&has_port, "project, may connect to port 443").await;
        check(&|it| it.preset == SandboxPreset::Network, "network").await;
        let variable = |it: &Sandbox| it.env.iter().any(|it| it == "C") && has_port(it);
        check(&variable, "project, inherits C, may connect to port 443").await;
    }

    #[tokio::test]
    async fn search_that_takes_too_long_ends_with_a_larger_sandbox() {
        let names = || (0..400).map(|it| PathBuf::from(format!("/{it}")));
        let all_even =
            |it: &Sandbox| names().step_by(2).all(|path| is_covered(path.to_str().unwrap(), &it.read));
        let list = |path: &Path| if path == Path::new("/") { names().collect() } else { Vec::new() };
        let search = Search::new(async |it: &Sandbox| all_even(it), list);
        let learned = search.run(names().map(Permission::Read).collect()).await;
        assert_eq!((learned.starts, learned.is_smallest), (MAX_STARTS, false));
        assert!(all_even(&sandbox(&learned.permissions)));
    }
}
