//! The package that a command line loads: `npx`, `uvx` and containers.

use std::fmt;
use std::path::Path;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Secret};

/// A package, as the entry names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package<'a> {
    registry: &'static str,
    name: &'a str,
    /// The version or digest. `None` if each start may load another one.
    pin: Option<&'a str>,
}

impl fmt::Display for Package<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Package { registry, name, pin } = self;
        write!(f, "{registry} {name} {}", pin.unwrap_or("not pinned"))
    }
}

/// Returns the package of a server if each start may load another version of it. The text names it for messages.
pub(crate) fn unpinned_package(server: &ResolvedServer) -> Option<String> {
    let Endpoint::Stdio(endpoint) = &server.endpoint else { return None };
    let words: Vec<&str> = endpoint.args.iter().map(Secret::expose).collect();
    let package = package(&endpoint.command, &words)?;
    let remedy = match package.registry {
        "npm" => "@VERSION",
        "pypi" => "==VERSION",
        _ => "@sha256:DIGEST",
    };
    package.pin.is_none().then(|| format!("{0}: write `{0}{remedy}`", package.name))
}

/// Options of `docker run` that have a value of their own.
const CONTAINER_OPTIONS: &[&str] = &[
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--name",
    "-p",
    "--publish",
    "--network",
    "--mount",
    "-w",
    "--workdir",
    "-u",
    "--user",
    "--entrypoint",
    "--platform",
    "-l",
    "--label",
    "--add-host",
    "-m",
    "--memory",
    "--cpus",
    "--gpus",
    "-h",
    "--hostname",
    "--pull",
    "--device",
];

/// Finds the package of a command line.
pub(super) fn package<'a>(command: &str, args: &[&'a str]) -> Option<Package<'a>> {
    let program = Path::new(command).file_name()?.to_str()?;
    let program = program.trim_end_matches(".cmd").trim_end_matches(".exe");
    match (program, args) {
        ("npx" | "bunx" | "pnpx", args) => npm_package(args),
        ("npm" | "pnpm" | "bun", ["exec" | "x" | "dlx", rest @ ..]) => npm_package(rest),
        ("uvx" | "pipx", args) => python_package(args.strip_prefix(&["run"]).unwrap_or(args)),
        ("uv", ["tool", "run", rest @ ..]) => python_package(rest),
        ("docker" | "podman", ["run", rest @ ..]) => container_image(rest),
        _ => None,
    }
}

/// The value of an option, as the next word or after `=`.
fn option<'a>(args: &[&'a str], names: &[&str]) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(index, word)| match word.split_once('=') {
        Some((name, value)) if names.contains(&name) => Some(value),
        Some(_) | None => names.contains(word).then(|| args.get(index + 1).copied()).flatten(),
    })
}

fn first_word<'a>(args: &[&'a str]) -> Option<&'a str> {
    args.iter().copied().find(|it| !it.starts_with('-'))
}

fn npm_package<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let text = option(args, &["-p", "--package"]).or_else(|| first_word(args))?;
    let (name, version) = match text.rfind('@').filter(|it| *it > 0) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    Some(Package { registry: "npm", name, pin: version.filter(|it| is_version(it)) })
}

fn python_package<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let text = option(args, &["--from", "--spec"]).or_else(|| first_word(args))?;
    let (name, version) = match text.split_once("==").or_else(|| text.split_once('@')) {
        Some((name, version)) => (name.trim(), Some(version.trim())),
        None => (text, None),
    };
    Some(Package { registry: "pypi", name, pin: version.filter(|it| is_version(it)) })
}

fn container_image<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let mut words = args.iter().copied();
    let image = loop {
        let word = words.next()?;
        if CONTAINER_OPTIONS.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            break word;
        }
    };
    let (name, pin) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        // A tag can be moved.
        None => (image, None),
    };
    Some(Package { registry: "container", name, pin })
}

/// Whether a text is one version, and no range or tag.
fn is_version(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_digit())
        && text.contains('.')
        && text.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '+' | '!'))
        && !text.split('.').any(|it| it == "x" || it == "X")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let got = package(words[0], &words[1..]).map(|it| it.to_string());
        assert_eq!(got.unwrap_or_default(), want, "{line}");
    }

    /// RPT-294
    #[test]
    fn rpt_294_package_and_its_pin_are_found() {
        check("npx -y @scope/server@1.2.3 --flag", "npm @scope/server 1.2.3");
        check("npx -y @scope/server", "npm @scope/server not pinned");
        check("/usr/bin/npx server@latest", "npm server not pinned");
        check("npx server@^1.2.3", "npm server not pinned");
        check("npx --package=server@1.0.0-rc.1 run", "npm server 1.0.0-rc.1");
        check("npm exec server@1.x", "npm server not pinned");
        check("uvx mcp-server-git==2025.1.1", "pypi mcp-server-git 2025.1.1");
        check("uvx --from git-tools@0.3.1 server", "pypi git-tools 0.3.1");
        check("uv tool run mcp-server-git>=1", "pypi mcp-server-git>=1 not pinned");
        check("docker run -i --rm -e TOKEN mcp/git:1.2", "container mcp/git:1.2 not pinned");
        check("docker run --env-file=x mcp/git@sha256:abcd stdio", "container mcp/git sha256:abcd");
        check("node server.js", "");
        check("docker ps", "");
    }
}
