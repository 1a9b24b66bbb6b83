//! Which dialect a file is written in: its name says so, else what is in it.

use mcp_model::Dialect;

use crate::tree::{self, Node};

/// The dialect of a file, by its path (`agent.yaml`, `.minds/mcp.yaml`), else by its content. `None` where it is none
/// that this crate reads.
pub fn detect(path: &str, text: &str) -> Option<Dialect> {
    by_name(path).or_else(|| by_content(text))
}

fn by_name(path: &str) -> Option<Dialect> {
    let mut parts = path.rsplit(['/', '\\']);
    let file = parts.next()?;
    let folder = parts.next();
    match (folder, file) {
        (_, "agent.yaml" | "agent.yml") => Some(Dialect::HoloDeck),
        (Some(".minds"), "mcp.yaml") => Some(Dialect::Dominds),
        _ => None,
    }
}

fn by_content(text: &str) -> Option<Dialect> {
    let Some(root) = tree::parse(text).root else { return by_lines(text) };
    let transports = |node: &Node| {
        let members = node.members().unwrap_or_default();
        members.iter().any(|it| it.value.get("transport").is_some())
    };
    if let Some(servers) = root.get("servers") {
        let ours = root.get("version").is_some() || transports(&servers.value);
        return (ours && servers.value.items().is_none()).then_some(Dialect::Dominds);
    }
    if root.get("tools").is_some_and(|it| it.value.items().is_some()) {
        return Some(Dialect::HoloDeck);
    }
    (root.get("instructions").is_some() && root.get("model").is_some()).then_some(Dialect::HoloDeck)
}

/// What is no YAML is guessed by its lines, so that its mistake can be shown instead of a question about its dialect.
fn by_lines(text: &str) -> Option<Dialect> {
    let has = |key: &str| text.lines().any(|it| it.starts_with(key));
    if has("servers:") {
        return has("version:").then_some(Dialect::Dominds);
    }
    has("tools:").then_some(Dialect::HoloDeck)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, want: Option<Dialect>) {
        assert_eq!(detect(path, text), want, "{path} {text:?}");
    }

    #[test]
    fn the_name_decides_and_then_the_content() {
        check("agent.yaml", "", Some(Dialect::HoloDeck));
        check("x/agent.yml", "version: 1\nservers: {}", Some(Dialect::HoloDeck));
        check("/w/.minds/mcp.yaml", "", Some(Dialect::Dominds));
        check("C:\\w\\.minds\\mcp.yaml", "", Some(Dialect::Dominds));
        check("mcp.yaml", "version: 1\nservers: {}", Some(Dialect::Dominds));
        check("x.yaml", "servers:\n  a: {transport: stdio}", Some(Dialect::Dominds));
        check("x.yaml", "tools:\n  - {name: a, type: mcp}", Some(Dialect::HoloDeck));
        check("x.yaml", "model: {}\ninstructions: {}", Some(Dialect::HoloDeck));
        check("x.yaml", "servers: [a]\nversion: 1", None);
        check("x.yaml", "a: b", None);
        check("x.yaml", "", None);
        check("x.yaml", "a: [", None);
        check("x.yaml", "version: 1\nservers:\n\ta: 1", Some(Dialect::Dominds));
        check("x.yaml", "servers: [", None);
        check("x.yaml", "name: a\ntools:\n\t- 1", Some(Dialect::HoloDeck));
        check("x.json", "{\n  \"servers\": {,\n", None);
    }
}
