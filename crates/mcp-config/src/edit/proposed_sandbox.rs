//! The sandbox that is proposed for a new server, by the kind of its program.

use mcp_host_model::{Sandbox, SandboxPreset};

use crate::dialect::sandbox::written;
use crate::syntax::output::QuoteStyle;

/// The ports of DNS and of package registries.
const REGISTRY_PORTS: [u16; 2] = [53, 443];

/// Proposes a sandbox for a server with this command.
///
/// A launcher that downloads packages may write their cache and connect to registries. A container has a boundary of
/// its own, and its client needs the service of the containers, so it gets no sandbox. Any other program gets the
/// preset `project`.
pub fn propose_sandbox(command: &str) -> Sandbox {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let caches: &[&str] = match name {
        "docker" | "podman" | "nerdctl" => return Sandbox::new(SandboxPreset::Off),
        "npx" | "npm" => &["~/.npm"],
        "bunx" | "bun" => &["~/.bun"],
        "uvx" | "uv" => &["~/.cache/uv", "~/.local/share/uv"],
        "pipx" => &["~/.cache/pip", "~/.local/share/pipx"],
        "deno" => &["~/.cache/deno"],
        _ => return Sandbox::new(SandboxPreset::Project),
    };
    let mut res = Sandbox::new(SandboxPreset::Project);
    res.write = caches.iter().map(|it| (*it).to_owned()).collect();
    res.ports = REGISTRY_PORTS.to_vec();
    res
}

/// The value of the key `sandbox` on one line, as JSON.
///
/// ```
/// use mcp_host_config::sandbox_text;
/// use mcp_host_model::{Sandbox, SandboxPreset};
///
/// let mut sandbox = Sandbox::new(SandboxPreset::Project);
/// assert_eq!(sandbox_text(&sandbox), r#""project""#);
/// sandbox.read = vec!["~/data".to_owned()];
/// assert_eq!(sandbox_text(&sandbox), r#"{"preset": "project", "read": ["~/data"]}"#);
/// ```
pub fn sandbox_text(sandbox: &Sandbox) -> String {
    written(sandbox).to_flow(QuoteStyle::Always)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_is_proposed_by_the_kind_of_the_program() {
        let check = |command: &str, want: &str| assert_eq!(propose_sandbox(command).to_string(), want);
        check("npx", "project, may write ~/.npm, may connect to port 53 443");
        check("/usr/bin/uvx", "project, may write ~/.cache/uv ~/.local/share/uv, may connect to port 53 443");
        check("docker", "off");
        check("python3", "project, has no network");
        check("./server", "project, has no network");
    }
}
