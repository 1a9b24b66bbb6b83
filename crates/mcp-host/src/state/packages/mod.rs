//! The package that a command line loads: `npx`, `uvx` and containers.

mod newest_version;

use std::fmt;
use std::ops::Range;
use std::path::Path;

pub use newest_version::PackageError;

/// A package, as the entry names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package<'a> {
    registry: PackageRegistry,
    name: &'a str,
    /// The version or digest. `None` if each start may load another one.
    pin: Option<&'a str>,
    /// The name with its version or range.
    requirement: &'a str,
    /// The position of the argument that names it.
    argument: usize,
}

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum PackageRegistry {
    /// npm.
    Npm,
    /// PyPI.
    Pypi,
    /// A registry of images of containers.
    Container,
}

/// A package of which each start may load another version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnpinnedPackage {
    /// Where it comes from.
    pub registry: PackageRegistry,
    /// Its name, with the range or tag of the entry.
    pub requirement: String,
    /// The name alone.
    pub name: String,
    /// The position of the argument that names it.
    pub argument: usize,
    /// The text of that argument.
    text: String,
    /// The part of it that is replaced.
    range: Range<usize>,
}

impl UnpinnedPackage {
    /// Returns the package of a command line if each start may load another version of it.
    pub fn of(command: &str, args: &[&str]) -> Option<UnpinnedPackage> {
        let Package { registry, name, pin, requirement, argument } = package(command, args)?;
        if pin.is_some() {
            return None;
        }
        let text = args[argument].to_owned();
        // The requirement is the end of its argument, as in `--package=NAME`.
        let range = text.len() - requirement.len()..text.len();
        Some(UnpinnedPackage {
            registry,
            requirement: requirement.to_owned(),
            name: bare_name(registry, name).to_owned(),
            argument,
            text,
            range,
        })
    }

    /// Returns the argument with a version, or with the digest of an image.
    pub fn pinned_argument(&self, version: &str) -> String {
        let mut res = self.text.clone();
        res.replace_range(self.range.clone(), &self.pinned(version));
        res
    }

    /// Returns what to write instead of the requirement: `NAME@VERSION`.
    pub fn pinned(&self, version: &str) -> String {
        match self.registry {
            PackageRegistry::Npm | PackageRegistry::Container => format!("{}@{version}", self.name),
            PackageRegistry::Pypi => format!("{}=={version}", self.name),
        }
    }

    /// Returns what to write instead of the requirement, for messages.
    pub fn placeholder(&self) -> String {
        match self.registry {
            PackageRegistry::Npm | PackageRegistry::Pypi => self.pinned("VERSION"),
            PackageRegistry::Container => self.pinned("sha256:DIGEST"),
        }
    }
}

impl fmt::Display for Package<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registry: &'static str = self.registry.into();
        write!(f, "{registry} {} {}", self.name, self.pin.unwrap_or("not pinned"))
    }
}

/// The name of a package without a range: `a` of `a>=1`.
fn bare_name(registry: PackageRegistry, name: &str) -> &str {
    match registry {
        PackageRegistry::Npm | PackageRegistry::Container => name,
        PackageRegistry::Pypi => name.split(['<', '>', '=', '!', '~', ';', '@', ' ']).next().unwrap_or(name),
    }
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
pub(crate) fn package<'a>(command: &str, args: &[&'a str]) -> Option<Package<'a>> {
    let program = Path::new(command).file_name()?.to_str()?;
    let program = program.trim_end_matches(".cmd").trim_end_matches(".exe");
    let (rest, find): (&[&'a str], PackageFinder) = match (program, args) {
        ("npx" | "bunx" | "pnpx", args) => (args, npm_package),
        ("npm" | "pnpm" | "bun", ["exec" | "x" | "dlx", rest @ ..]) => (rest, npm_package),
        ("uvx" | "pipx", args) => (args.strip_prefix(&["run"]).unwrap_or(args), python_package),
        ("uv", ["tool", "run", rest @ ..]) => (rest, python_package),
        ("docker" | "podman", ["run", rest @ ..]) => (rest, container_image),
        _ => return None,
    };
    let found = find(rest)?;
    Some(Package { argument: args.len() - rest.len() + found.argument, ..found })
}

/// Finds the package among the arguments of its launcher.
type PackageFinder = for<'a> fn(&[&'a str]) -> Option<Package<'a>>;

/// The value of an option, as the next word or after `=`, with the position of its word.
fn option<'a>(args: &[&'a str], names: &[&str]) -> Option<Word<'a>> {
    args.iter().enumerate().find_map(|(position, word)| match word.split_once('=') {
        Some((name, text)) if names.contains(&name) => Some(Word { position, text }),
        Some(_) | None if names.contains(word) => {
            args.get(position + 1).map(|text| Word { position: position + 1, text })
        }
        Some(_) | None => None,
    })
}

fn first_word<'a>(args: &[&'a str]) -> Option<Word<'a>> {
    let position = args.iter().position(|it| !it.starts_with('-'))?;
    Some(Word { position, text: args[position] })
}

/// A word of a command line, or the end of one.
struct Word<'a> {
    position: usize,
    text: &'a str,
}

fn npm_package<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let Word { position, text } = option(args, &["-p", "--package"]).or_else(|| first_word(args))?;
    let (name, version) = match text.rfind('@').filter(|it| *it > 0) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let pin = version.filter(|it| is_version(it));
    Some(Package { registry: PackageRegistry::Npm, name, pin, requirement: text, argument: position })
}

fn python_package<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let Word { position, text } = option(args, &["--from", "--spec"]).or_else(|| first_word(args))?;
    let (name, version) = match text.split_once("==").or_else(|| text.split_once('@')) {
        Some((name, version)) => (name.trim(), Some(version.trim())),
        None => (text, None),
    };
    let pin = version.filter(|it| is_version(it));
    Some(Package { registry: PackageRegistry::Pypi, name, pin, requirement: text, argument: position })
}

fn container_image<'a>(args: &[&'a str]) -> Option<Package<'a>> {
    let mut words = args.iter().enumerate();
    let (argument, image) = loop {
        let (position, word) = words.next()?;
        if CONTAINER_OPTIONS.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            break (position, *word);
        }
    };
    let (name, pin) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        // A tag can be moved.
        None => (image, None),
    };
    Some(Package { registry: PackageRegistry::Container, name, pin, requirement: image, argument })
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

    // RPT-297
    #[test]
    fn rpt_297_version_is_written_into_the_argument_that_names_the_package() {
        let check = |line: &str, argument: usize, want: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let found = UnpinnedPackage::of(words[0], &words[1..]).expect("it is not pinned");
            assert_eq!((found.argument, found.pinned_argument("1.2.3").as_str()), (argument, want), "{line}");
        };
        check("npx -y @scope/server", 1, "@scope/server@1.2.3");
        check("npx server@latest --flag", 0, "server@1.2.3");
        check("npx --package=server@^1.0.0 run", 0, "--package=server@1.2.3");
        check("npm exec -p server run", 2, "server@1.2.3");
        check("uvx mcp-server-git", 0, "mcp-server-git==1.2.3");
        check("pipx run mcp-server-git>=1", 1, "mcp-server-git==1.2.3");
        check("uv tool run --from git-tools[cli]@latest server", 3, "git-tools[cli]==1.2.3");
        check("docker run -i --rm -e TOKEN mcp/git:1.2 stdio", 5, "mcp/git:1.2@1.2.3");
        assert_eq!(UnpinnedPackage::of("npx", &["server@1.2.3"]), None);
        assert_eq!(UnpinnedPackage::of("node", &["server.js"]), None);
    }
}
