//! Trust in configurations of projects: their servers start only after the user approved them.
//!
//! A configuration needs approval if the command named neither it nor its folder, and it is not in the home folder. The
//! administrator's policy can allow or refuse all, or allow folders.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcp_host_runtime::ApprovedServers;
use serde::Deserialize;

use crate::runtime::bounded_read::{read_bytes, to_text};
use crate::runtime::system;

/// The administrator's policy.
const POLICY_FILE: &str = "/etc/mcp-host/trust.json";

/// The maximum size of the policy.
const MAX_POLICY_BYTES: u64 = 64 << 10;

/// How configurations of projects are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectTrust {
    /// Whether the command line says that the project is trusted.
    is_requested: bool,
    policy: TrustPolicy,
}

/// The policy of the administrator, as a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustPolicy {
    #[serde(default)]
    projects: ProjectPolicy,
    /// Folders whose configurations need no approval.
    #[serde(default)]
    folders: Vec<PathBuf>,
}

/// What happens to the configuration of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProjectPolicy {
    /// Its servers start after the user approved them.
    #[default]
    Ask,
    /// Its servers start.
    Allow,
    /// Its servers start after the user approved them; `--trust-project` has no effect.
    Confirm,
}

impl ProjectTrust {
    /// Reads the policy. Fails with a message if it cannot be read.
    pub(crate) fn new(is_requested: bool) -> Result<ProjectTrust, String> {
        Ok(ProjectTrust { is_requested, policy: read_policy(Path::new(POLICY_FILE))? })
    }

    /// Whether the servers of a file of a project start only after an approval.
    pub(crate) fn needs_approval(&self, file: &Path) -> bool {
        let TrustPolicy { projects, folders } = &self.policy;
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if folders.iter().any(|it| file.starts_with(it)) {
            return false;
        }
        match projects {
            ProjectPolicy::Allow => false,
            ProjectPolicy::Ask => !self.is_requested,
            ProjectPolicy::Confirm => true,
        }
    }
}

/// Reads the policy of the administrator. A file that other users can change is an error.
fn read_policy(path: &Path) -> Result<TrustPolicy, String> {
    match read_administrator_file(path, MAX_POLICY_BYTES)? {
        Some(text) => {
            serde_json::from_str(&text).map_err(|error| format!("cannot use {}: {error}", path.display()))
        }
        None => Ok(TrustPolicy::default()),
    }
}

/// Reads a file of the administrator, if it exists. One that other users can change is an error.
pub(crate) fn read_administrator_file(path: &Path, max_bytes: u64) -> Result<Option<String>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("cannot use {}: {why}", path.display());
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    if !system::is_trusted(path, &metadata) {
        return Err(failed(&"other users can change it"));
    }
    let text = read_bytes(file, max_bytes).and_then(to_text).map_err(|error| failed(&error))?;
    Ok(Some(text))
}

/// The servers that the user approved. `None` without a state folder.
pub(crate) fn approved_servers() -> Option<ApprovedServers> {
    let path =
        mcp_host_runtime::state_path("mcp-host/approved-servers.json", &|name| env::var_os(name)).ok()?;
    Some(ApprovedServers::new(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// RPT-284
    #[test]
    fn rpt_284_policy_of_the_administrator_decides_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        let file = folder.path().join("a/.mcp.json");
        let check = |policy: &str, is_requested: bool, want: Option<bool>| {
            fs::write(&path, policy).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let read = read_policy(&path).ok();
            let trust = read.map(|policy| ProjectTrust { is_requested, policy });
            assert_eq!(trust.map(|it| it.needs_approval(&file)), want, "{policy} {is_requested}");
        };
        check("{}", false, Some(true));
        check("{}", true, Some(false));
        check(r#"{"projects": "allow"}"#, false, Some(false));
        check(r#"{"projects": "confirm"}"#, true, Some(true));
        check(r#"{"folders": ["/srv"]}"#, false, Some(true));
        let root = folder.path().display();
        check(&format!(r#"{{"projects": "confirm", "folders": ["{root}"]}}"#), false, Some(false));
        check(r#"{"project": "allow"}"#, false, None);
        check("{", false, None);
        assert_eq!(read_policy(&folder.path().join("none")), Ok(TrustPolicy::default()));
        // A policy that others can change is none.
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(read_policy(&path).is_err());
    }
}
