//! The sandbox of a stdio server: what its processes may read, write and connect to.

use std::fmt;

/// A sandbox. Everything that it does not allow is refused, for the process of the server and all processes that it
/// starts.
///
/// In a specification the paths are written texts with references. In an endpoint they are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Sandbox {
    /// What is allowed without being listed.
    pub preset: SandboxPreset,
    /// Files and folders that it may also read.
    pub read: Vec<String>,
    /// Files and folders that it may also read and write.
    pub write: Vec<String>,
    /// Files and folders that it may not read, although they are in one that it may read.
    pub deny_read: Vec<String>,
    /// Files and folders that it may not write, although they are in one that it may write.
    pub deny_write: Vec<String>,
    /// TCP ports that it may connect to, on any host. Port 53 also allows UDP, for the names of hosts.
    pub ports: Vec<u16>,
    /// Names of variables that it also inherits from the host.
    pub env: Vec<String>,
}

/// What a sandbox allows without being listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum SandboxPreset {
    /// Reading programs, their packages and the working directory, and a temporary folder of its own. No network.
    Project,
    /// The same, and the whole network.
    Network,
    /// Everything: there is no sandbox.
    Off,
}

impl Sandbox {
    /// Creates a sandbox that allows only what the preset does.
    pub fn new(preset: SandboxPreset) -> Sandbox {
        Sandbox {
            preset,
            read: Vec::new(),
            write: Vec::new(),
            deny_read: Vec::new(),
            deny_write: Vec::new(),
            ports: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl SandboxPreset {
    /// Returns `project`, `network` or `off`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Sandbox {
    /// The sandbox as JSON with all its members. Two sandboxes with the same text are equal.
    pub fn to_json(&self) -> String {
        let Sandbox { preset, read, write, deny_read, deny_write, ports, env } = self;
        // Sorted, so that the text does not depend on how a JSON object orders its members.
        serde_json::json!({
            "deny_read": deny_read,
            "deny_write": deny_write,
            "env": env,
            "ports": ports,
            "preset": preset.as_str(),
            "read": read,
            "write": write,
        })
        .to_string()
    }
}

impl fmt::Display for Sandbox {
    /// `project, may write /w, may connect to port 443`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.preset.as_str())?;
        let lists = [
            (", may read ", &self.read),
            (", may write ", &self.write),
            (", may not read ", &self.deny_read),
            (", may not write ", &self.deny_write),
            (", inherits ", &self.env),
        ];
        for (words, list) in lists.into_iter().filter(|it| !it.1.is_empty()) {
            write!(f, "{words}{}", list.join(" "))?;
        }
        match (self.preset, &self.ports[..]) {
            (SandboxPreset::Project, []) => f.write_str(", has no network"),
            (SandboxPreset::Project, ports) => {
                f.write_str(", may connect to port")?;
                ports.iter().try_for_each(|port| write!(f, " {port}"))
            }
            (SandboxPreset::Network | SandboxPreset::Off, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_everything_that_is_listed() {
        let mut sandbox = Sandbox::new(SandboxPreset::Project);
        assert_eq!(sandbox.to_string(), "project, has no network");
        sandbox.read = vec!["/a".to_owned(), "/b".to_owned()];
        (sandbox.write, sandbox.deny_read) = (vec!["/w".to_owned()], vec!["/a/x".to_owned()]);
        (sandbox.deny_write, sandbox.env) = (vec!["/w/x".to_owned()], vec!["TOKEN".to_owned()]);
        sandbox.ports = vec![53, 443];
        assert_eq!(
            sandbox.to_string(),
            "project, may read /a /b, may write /w, may not read /a/x, may not write /w/x, inherits TOKEN, \
             may connect to port 53 443"
        );
        assert_eq!(
            sandbox.to_json(),
            concat!(
                r#"{"deny_read":["/a/x"],"deny_write":["/w/x"],"env":["TOKEN"],"ports":[53,443],"#,
                r#""preset":"project","read":["/a","/b"],"write":["/w"]}"#
            )
        );
        assert_eq!(Sandbox::new(SandboxPreset::Network).to_string(), "network");
    }
}
