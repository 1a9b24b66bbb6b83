//! Decides which arguments and variables of a stdio server may be secrets.
//!
//! The names of programs, packages, modules, scripts and folders are not redacted: without them a message
//! does not say what is missing.

#[cfg(feature = "stdio")]
use std::ffi::OsString;

use mcp_host_model::Secret;
#[cfg(any(feature = "endpoint", feature = "stdio"))]
use mcp_host_model::StdioEndpoint;
use mcp_host_model::internal::{names_secret, names_setting};

#[cfg(any(feature = "endpoint", feature = "stdio"))]
use super::{json_secrets, secret_parts};

/// Options in lower case that are followed by a name.
const NAME_OPTIONS: [&str; 15] = [
    "-m",
    "--module",
    "--from",
    "--with",
    "--package",
    "--directory",
    "--project",
    "--prefix",
    "--cwd",
    "-e",
    "--env",
    "--name",
    "--python",
    "--require",
    "--import",
];

/// Programs whose first argument names what they run. With any other program it may be a secret.
const RUNNERS: [&str; 29] = [
    "bun", "bunx", "cargo", "cmd", "deno", "docker", "dotnet", "env", "go", "java", "mcp-host", "node",
    "npm", "npx", "perl", "php", "pipx", "pnpm", "podman", "poetry", "python", "python3", "ruby", "ts-node",
    "tsx", "uv", "uvx", "yarn", "pdm",
];

/// The commands of package runners that are followed by the name of what is run.
const RUN_COMMANDS: [&str; 8] = ["run", "exec", "x", "dlx", "tool", "start", "run-script", "compose"];

/// The extensions of programs and scripts.
const SCRIPT_EXTENSIONS: [&str; 14] = [
    ".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".php", ".pl", ".sh", ".jar", ".dll", ".exe",
    ".csproj",
];

/// Variables with paths and settings that are no secret.
#[cfg(any(feature = "endpoint", feature = "stdio"))]
const PUBLIC_VARIABLES: [&str; 16] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOG_LEVEL",
    "NODE_ENV",
    "NODE_PATH",
    "PATH",
    "PWD",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
];

/// Returns the values of an endpoint that may be secrets, with their parts: its environment, and its arguments except
/// names.
#[cfg(any(feature = "endpoint", feature = "stdio"))]
pub(crate) fn stdio_secrets(endpoint: &StdioEndpoint) -> Vec<Secret> {
    let environment = endpoint.env.iter().filter(|(name, _)| !PUBLIC_VARIABLES.contains(&name.as_str()));
    let values: Vec<&Secret> = environment
        .map(|(_, value)| value)
        .chain(argument_secrets(&endpoint.command, &endpoint.args))
        .collect();
    let parts = values.iter().flat_map(|value| secret_parts(value));
    // A variable may contain a JSON configuration, and the server may repeat any string of it.
    parts.chain(values.iter().flat_map(|value| json_secrets(value))).collect()
}

/// The minimum length of a secret in an inherited variable. Shorter values are settings, such as `true`.
#[cfg(feature = "stdio")]
const MIN_INHERITED_BYTES: usize = 8;

/// Returns the values of inherited variables that are named like secrets, with their parts. Paths, numbers and short
/// values are left out: they are no secrets, and redacting them would make messages unreadable.
#[cfg(feature = "stdio")]
pub(crate) fn inherited_secrets(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Secret> {
    let secrets = variables.filter_map(|(name, value)| {
        let is_secret = names_secret(name.to_str()?);
        let value = value.into_string().ok().filter(|_| is_secret)?;
        let is_setting =
            value.starts_with(['/', '~', '.']) || value.bytes().all(|byte| byte.is_ascii_digit());
        (!is_setting).then(|| Secret::new(value))
    });
    let parts = secrets.flat_map(|value| secret_parts(&value));
    parts.filter(|part| part.expose().len() >= MIN_INHERITED_BYTES).collect()
}

/// Returns the arguments of a command that may be secrets: all except options and names. The first argument of a
/// package runner or interpreter that is no option is the name of what it runs.
pub fn argument_secrets<'a>(command: &str, arguments: &'a [Secret]) -> impl Iterator<Item = &'a Secret> {
    let program = command.rsplit('/').next().unwrap_or_default();
    let is_version = |character: char| character.is_ascii_digit() || character == '.';
    let is_runner = RUNNERS.contains(&program) || RUNNERS.contains(&program.trim_end_matches(is_version));
    // Whether the name of what the runner runs was found.
    let mut has_name = !is_runner;
    // The previous argument, if it is an option.
    let mut previous_option = None;
    arguments.iter().filter(move |argument| {
        let argument = argument.expose();
        let option: Option<String> = previous_option.take();
        if argument.starts_with('-') && !argument.contains('=') {
            previous_option = Some(argument.to_ascii_lowercase());
            return false;
        }
        if !is_name(argument) || option.as_deref().is_some_and(names_secret) {
            // An argument with blanks is the text of a script; the others are its arguments.
            has_name |= argument.contains([' ', '\n']);
            return true;
        }
        if option.as_deref().is_some_and(names_setting) {
            return false;
        }
        if option.as_deref().is_some_and(|option| NAME_OPTIONS.contains(&option)) {
            has_name |= option.as_deref() == Some("-m");
            return false;
        }
        if is_script_or_package(argument) || (!has_name && RUN_COMMANDS.contains(&argument)) {
            return false;
        }
        std::mem::replace(&mut has_name, true)
    })
}

/// Whether an argument may be a name: it has no URL scheme, no `=`, and no blank.
fn is_name(argument: &str) -> bool {
    !argument.contains("://") && !argument.contains(['=', '\n', ' '])
}

/// Whether an argument is the path of a script, or the name of a package in a scope (`@scope/name@1.0`).
fn is_script_or_package(argument: &str) -> bool {
    let is_scoped = || {
        let mut parts = argument.strip_prefix('@')?.split('/');
        let (scope, name) = (parts.next()?, parts.next()?);
        Some(!scope.is_empty() && !name.is_empty() && parts.next().is_none() && !scope.contains(['@', ':']))
    };
    SCRIPT_EXTENSIONS.iter().any(|extension| argument.ends_with(extension)) || is_scoped().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, arguments: &[&str], want: &[&str]) {
        let arguments: Vec<Secret> = arguments.iter().map(|it| Secret::from(*it)).collect();
        let got: Vec<&str> = argument_secrets(command, &arguments).map(|it| it.expose()).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn hd_sc5_names_are_no_secrets_and_other_arguments_are() {
        check("npx", &["-y", "server-x", "hunter2-token"], &["hunter2-token"]);
        check("/usr/bin/npx", &["-y", "@scope/server@1.0", "name", "hunter2-token"], &["hunter2-token"]);
        check("npx", &["--api-token", "hunter2", "server-x"], &["hunter2"]);
        check("python3.12", &["-m", "mcp_server", "hunter2-token"], &["hunter2-token"]);
        check("uv", &["--directory", "/srv/app", "run", "server.py", "name", "hunter2"], &["hunter2"]);
        check(
            "docker",
            &["run", "-i", "--rm", "-e", "TOKEN", "-e", "KEY=hunter2", "mcp/server", "hunter2"],
            &["KEY=hunter2", "hunter2"],
        );
        check("uvx", &["--from", "package", "program", "hunter2"], &["hunter2"]);
        check("node", &["build/index.js", "--key=hunter2"], &["--key=hunter2"]);
        check("npx", &["postgres://me:hunter2@db/x"], &["postgres://me:hunter2@db/x"]);
        check("node", &["-e", "connect(\"a b\")", "hunter2"], &["connect(\"a b\")", "hunter2"]);
        check("my-server", &["hunter2-token"], &["hunter2-token"]);
        check("my-server", &["--config", "hunter2-token"], &["hunter2-token"]);
        // RPT-212
        check("uvx", &["mcp-server-time", "--local-timezone", "Mars/Olympus"], &[]);
        check("my-server", &["--port", "80800", "--auth-path", "hunter2"], &["hunter2"]);
        check("my-server", &["--host", "https://me:hunter2@x"], &["https://me:hunter2@x"]);
    }

    #[test]
    fn hd_sc5_inherited_variables_named_like_secrets_are_secrets() {
        let variables = [
            ("GITHUB_TOKEN", "ghp_hunter2"),
            ("DB_PASSWD", "correct horse"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG"),
            ("USE_TOKENS", "true"),
            ("MAX_TOKENS", "123456789"),
            ("SSH_AUTH_SOCK", "/run/user/1000/agent"),
            ("EDITOR", "a-long-editor-name"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let got = inherited_secrets(variables.into_iter());
        let mut got: Vec<&str> = got.iter().map(Secret::expose).collect();
        got.dedup();
        assert_eq!(got, ["ghp_hunter2", "correct horse", "wJalrXUtnFEMI/K7MDENG"]);
    }

    #[test]
    fn hd_sc5_values_of_the_environment_are_secrets_except_paths() {
        let mut endpoint = StdioEndpoint::new("x");
        endpoint.env = vec![
            ("TOKEN".to_owned(), Secret::from("hunter2")),
            ("PYTHONPATH".to_owned(), Secret::from("/srv/application")),
        ];
        let got: Vec<String> = stdio_secrets(&endpoint).iter().map(|it| it.expose().to_owned()).collect();
        assert_eq!(got, ["hunter2"]);
    }
}
