//! The newest version of a package, from its package manager.
//!
//! npm, uv and docker are asked, because they know the registries, logins and proxies of the user. They run in the
//! temporary folder, so that no file of a project changes where they look, and without a shell. No code of the package
//! is downloaded or run.

use std::env;
use std::process::Command;
use std::time::Duration;

use mcp_host_transport::{ProgramSearch, ProgramSearchResult, find_program};

use super::{PackageRegistry, UnpinnedPackage, is_version};
use crate::state::program_output::{OutputLimits, program_output};

/// What a package manager may print, and how long it may take.
const LIMITS: OutputLimits = OutputLimits { bytes: 1 << 20, time: Duration::from_secs(60) };

/// The longest name or range that is looked up.
const MAX_REQUIREMENT_BYTES: usize = 214;

/// Why the newest version of a package is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The entry names a file, an address or something else that no registry has.
    #[error("`{0}` does not name a package of a registry")]
    NotOfRegistry(String),
    /// The package manager is not installed.
    #[error("{0} is needed to look up its version, and is not on the PATH")]
    NoProgram(&'static str),
    /// The package manager failed.
    #[error("{program} {problem}; run `{command}` to see why")]
    Failed {
        /// The package manager.
        program: &'static str,
        /// What failed.
        problem: String,
        /// The command line.
        command: String,
    },
}

impl UnpinnedPackage {
    /// Asks the package manager for the newest version that the entry accepts, or for the digest of an image. Blocks,
    /// for a minute at most.
    pub fn newest_version(&self) -> Result<String, PackageError> {
        if !self.is_of_registry() {
            return Err(PackageError::NotOfRegistry(self.requirement.clone()));
        }
        let requirement = self.requirement.as_str();
        match self.registry {
            PackageRegistry::Npm => {
                ask("npm", &["view", requirement, "version", "--json"], parse_npm_versions)
            }
            // `NAME@latest` is a form of uvx only.
            PackageRegistry::Pypi => {
                let args = ["pip", "compile", "-", "--no-deps", "--no-build", "--no-header", "--no-annotate"];
                let requirement = requirement.strip_suffix("@latest").unwrap_or(requirement);
                let parse =
                    |text: &str| Some(text.trim().split_once("==")?.1.to_owned()).filter(|it| is_version(it));
                ask_with_input("uv", &args, requirement, parse)
            }
            PackageRegistry::Container => {
                let args =
                    ["buildx", "imagetools", "inspect", requirement, "--format", "{{json .Manifest.Digest}}"];
                ask("docker", &args, parse_digest)
            }
        }
    }

    /// Whether the requirement is a name with a range, and no option, file or address.
    fn is_of_registry(&self) -> bool {
        let is_letter = |it: char| match self.registry {
            PackageRegistry::Npm => it.is_ascii_alphanumeric() || "@/._-~^<>=*".contains(it),
            PackageRegistry::Pypi => it.is_ascii_alphanumeric() || "._-[],<>=!~@".contains(it),
            PackageRegistry::Container => it.is_ascii_alphanumeric() || "/._-:".contains(it),
        };
        let has_name = self.name.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '@');
        // `owner/repository` is one of GitHub for npm.
        let is_repository =
            self.registry == PackageRegistry::Npm && !self.name.starts_with('@') && self.name.contains('/');
        has_name
            && !is_repository
            && self.requirement.len() <= MAX_REQUIREMENT_BYTES
            && self.requirement.chars().all(is_letter)
    }
}

fn ask(
    program: &'static str,
    args: &[&str],
    parse: impl Fn(&str) -> Option<String>,
) -> Result<String, PackageError> {
    ask_with_input(program, args, "", parse)
}

/// Runs a package manager, and reads a version from its output.
fn ask_with_input(
    program: &'static str,
    args: &[&str],
    input: &str,
    parse: impl Fn(&str) -> Option<String>,
) -> Result<String, PackageError> {
    let folder = env::temp_dir();
    let path = env::var("PATH").unwrap_or_default();
    let ProgramSearchResult::Found(file) = find_program(program, ProgramSearch::new(&path, &folder)) else {
        return Err(PackageError::NoProgram(program));
    };
    let mut command = Command::new(file);
    // npm would also look for a newer npm.
    command.args(args).current_dir(folder).env("npm_config_update_notifier", "false");
    let failed = |problem: String| {
        let command = match input {
            "" => format!("{program} {}", args.join(" ")),
            input => format!("echo '{input}' | {program} {}", args.join(" ")),
        };
        PackageError::Failed { program, problem, command }
    };
    let output = program_output(command, input, LIMITS).map_err(|error| failed(error.to_string()))?;
    parse(&String::from_utf8_lossy(&output)).ok_or_else(|| failed("printed no version".to_owned()))
}

/// Reads the output of `npm view`: one version, or all versions of a range.
fn parse_npm_versions(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Versions {
        One(String),
        All(Vec<String>),
    }
    let newest = match serde_json::from_str(text).ok()? {
        Versions::One(version) => version,
        // They are in the order of their publication, and an older line may be published later.
        Versions::All(versions) => versions.into_iter().max_by_key(|it| version_numbers(it))?,
    };
    Some(newest).filter(|it| is_version(it))
}

/// The numbers of a version; `None` for a release candidate, which is lower than all others.
fn version_numbers(version: &str) -> Option<Vec<u64>> {
    version.split('.').map(|it| it.parse().ok()).collect()
}

/// Reads the digest of an image, which is the same for all kinds of machines.
fn parse_digest(text: &str) -> Option<String> {
    let digest: String = serde_json::from_str(text).ok()?;
    let hex = digest.strip_prefix("sha256:")?;
    (hex.len() == 64 && hex.bytes().all(|it| it.is_ascii_hexdigit())).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-297
    #[test]
    fn rpt_297_only_names_of_registries_are_looked_up() {
        let refused = |command: &str, argument: &str| {
            let package = UnpinnedPackage::of(command, &["-y", argument]);
            let error = package.map(|it| it.newest_version());
            let want = PackageError::NotOfRegistry(argument.to_owned());
            assert_eq!(error, Some(Err(want)), "{argument}");
        };
        refused("npx", "./server");
        refused("npx", "owner/repository");
        refused("npx", "git+https://a.example/x.git");
        refused("npx", "https://a.example/x.tgz");
        refused("uvx", "git+https://a.example/x.git");
        refused("uvx", "a;evil");
        refused("npx", "a b");
        refused("npx", &"a".repeat(300));
    }

    #[test]
    fn newest_version_of_a_range_is_found_by_its_numbers() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(parse_npm_versions(text).as_deref(), want, "{text}");
        };
        check("\"1.2.3\"", Some("1.2.3"));
        check("[\"1.2.0\", \"1.10.0\", \"1.9.1\", \"2.0.0-rc.1\"]", Some("1.10.0"));
        check("\"latest\"", None);
        check("{}", None);
        check("", None);
    }

    #[test]
    fn digest_is_read() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(parse_digest(&format!("\"{digest}\"\n")), Some(digest));
        assert_eq!(parse_digest("\"sha256:0a\""), None);
        assert_eq!(parse_digest("no"), None);
    }
}
