//! The identity of a shared host: clients with the same one share the host.
//!
//! It contains everything that decides what the host would do for the client: the build of the program, the arguments,
//! the environment, and the working folder. Variables of terminals and of clients are left out, and the host does not
//! receive them. So no server sees a variable of another client. In doubt, a client has a host of its own.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use mcp_host_config::internal::is_user_file;
use mcp_host_transport::{TOKEN_VARIABLE, open_named_file};

use crate::args::{GlobalArgs, ServeArgs};
use crate::config::locate::{CONFIG_PATHS, locate_config};
use crate::config::views::views_path;
use crate::runtime::bounded_read::read_bytes;
use crate::runtime::system::program_id;

/// The arguments that differ between the shim and its host.
const MODE_WORDS: [&str; 3] = ["--stdio", "--socket", "--detach"];

/// Variables that belong to a terminal or a shell.
const TERMINAL_VARIABLES: [&str; 12] = [
    "_",
    "COLORTERM",
    "COLUMNS",
    "GPG_TTY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "TERM",
];

/// Variables that clients set for themselves. The last one is ours: the host outlives a client that is mcp-host.
const CLIENT_VARIABLES: [&str; 5] =
    ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CURSOR_TRACE_ID", TOKEN_VARIABLE];

/// The beginnings of names of variables of both kinds.
const IGNORED_PREFIXES: [&str; 4] = ["ELECTRON_", "TERM_", "TMUX", "VSCODE_"];

/// The maximum size of a file that the host reads at its start.
const MAX_START_FILE_BYTES: u64 = 1 << 20;

/// The number of hexadecimal digits of the text of an identity. It is a part of the path of a socket, which is short.
const TEXT_DIGITS: usize = 24;

/// The identity of a shared host, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostIdentity(String);

/// What an identity is computed from.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdentityParts {
    program: String,
    words: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    /// `None` if nothing depends on it.
    folder: Option<PathBuf>,
    /// The files that the host reads at its start only.
    start_files: Vec<Vec<u8>>,
}

impl HostIdentity {
    /// The identity of the host for this process.
    pub(crate) fn of_process(global: &GlobalArgs, args: &ServeArgs) -> io::Result<HostIdentity> {
        let parts = IdentityParts {
            program: format!("{} {}", env!("CARGO_PKG_VERSION"), program_id()?),
            words: host_words(env::args_os().skip(1)),
            variables: host_variables(env::vars_os()),
            folder: if depends_on_folder(global, args) { Some(env::current_dir()?) } else { None },
            start_files: read_start_files(args),
        };
        Ok(HostIdentity::new(&parts))
    }

    fn new(parts: &IdentityParts) -> HostIdentity {
        let IdentityParts { program, words, variables, folder, start_files } = parts;
        let mut hasher = blake3::Hasher::new();
        let mut add = |field: &[u8]| {
            // The length makes the fields unambiguous.
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field);
        };
        add(b"mcp-host shared host");
        add(program.as_bytes());
        add(&words.len().to_le_bytes());
        words.iter().for_each(|word| add(word.as_encoded_bytes()));
        add(&variables.len().to_le_bytes());
        for (name, value) in variables {
            add(name.as_encoded_bytes());
            add(value.as_encoded_bytes());
        }
        add(folder.as_ref().map_or(&b""[..], |folder| folder.as_os_str().as_encoded_bytes()));
        start_files.iter().for_each(|file| add(file));
        HostIdentity(hasher.finalize().to_hex()[..TEXT_DIGITS].to_owned())
    }

    /// The text, which is a part of file names.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The arguments of the host, without those that differ between the shim and the host.
fn host_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_mode = |word: &OsString| MODE_WORDS.iter().any(|mode| word == OsStr::new(mode));
    words.filter(|word| !is_mode(word)).collect()
}

/// The arguments of the host with another one, which is no argument of a positional kind.
pub(crate) fn host_words_with(words: impl Iterator<Item = OsString>, option: &str) -> Vec<OsString> {
    let mut res = host_words(words);
    let end = res.iter().position(|word| word == "--").unwrap_or(res.len());
    res.insert(end, option.into());
    res
}

/// The variables of the host in order.
pub(crate) fn host_variables(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut res: Vec<_> = variables.filter(|(name, _)| !is_ignored(name)).collect();
    res.sort();
    res
}

/// Whether a variable is left out.
fn is_ignored(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    TERMINAL_VARIABLES.contains(&name)
        || CLIENT_VARIABLES.contains(&name)
        || IGNORED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The content of the files that the host reads at its start only: rules for calls, and views. A missing file is empty;
/// the host reports it. Changes of other files are applied while the host runs.
fn read_start_files(args: &ServeArgs) -> Vec<Vec<u8>> {
    let configuration = args.file.as_deref().unwrap_or(Path::new(""));
    let views = || Some(views_path(&locate_config(configuration).ok()?.path));
    let paths = [args.rules.call_rules.clone(), args.view.as_ref().and_then(|_| views())];
    let read = |path: PathBuf| open_named_file(&path).and_then(|file| read_bytes(file, MAX_START_FILE_BYTES));
    paths.into_iter().map(|path| path.and_then(|path| read(path).ok()).unwrap_or_default()).collect()
}

/// Whether the working folder decides what the host does. It does not if the command line has absolute paths only, and
/// the file is one of a project by its name: its servers start in the project.
fn depends_on_folder(global: &GlobalArgs, args: &ServeArgs) -> bool {
    let Some(file) = &args.file else { return true };
    let other = [&args.audit, &args.spill, &args.rules.call_rules, &global.env_file];
    let is_project_file = CONFIG_PATHS.iter().any(|path| file.ends_with(path))
        && !is_user_file(file, env::home_dir().as_deref())
        && !global.has_dialect();
    !is_project_file
        || global.secret_command.is_some()
        || std::iter::once(file).chain(other.into_iter().flatten()).any(|path| is_relative(path))
}

fn is_relative(path: &Path) -> bool {
    !path.is_absolute()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn parts(words: &str, variables: &[(&str, &str)]) -> IdentityParts {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        IdentityParts {
            words: host_words(words.split(' ').map(OsString::from)),
            variables: host_variables(variables),
            ..IdentityParts::default()
        }
    }

    #[track_caller]
    fn check(parts: &IdentityParts, other: &IdentityParts, is_shared: bool) {
        assert_eq!(HostIdentity::new(parts) == HostIdentity::new(other), is_shared, "{parts:?} {other:?}");
    }

    #[test]
    fn sh_002_what_decides_separates_hosts() {
        let one =
            parts("serve /a/mcp.json --stdio --shared", &[("A", "1"), ("PWD", "/x"), ("TERM_PROGRAM", "p")]);
        check(&one, &parts("serve /a/mcp.json --socket --shared", &[("TERM", "dumb"), ("A", "1")]), true);
        check(&one, &parts("serve /a/mcp.json --stdio --shared --admin", &[("A", "1")]), false);
        check(&one, &parts("serve /b/mcp.json --stdio --shared", &[("A", "1")]), false);
        check(&one, &parts("serve /a/mcp.json --stdio --shared", &[("A", "2")]), false);
        check(&one, &parts("serve /a/mcp.json --stdio --shared", &[]), false);
        // Fields do not flow into each other.
        check(&parts("serve", &[("A", "BC")]), &parts("serve", &[("AB", "C")]), false);
        check(&parts("ab c", &[]), &parts("a bc", &[]), false);
        let folder = |path: &str| IdentityParts { folder: Some(path.into()), ..IdentityParts::default() };
        check(&folder("/a"), &folder("/b"), false);
        let rules = |text: &str| IdentityParts { start_files: vec![text.into()], ..IdentityParts::default() };
        check(&rules("deny tools=a"), &rules("deny tools=b"), false);
        let program = |text: &str| IdentityParts { program: text.into(), ..IdentityParts::default() };
        check(&program("1"), &program("2"), false);
    }

    #[track_caller]
    fn check_folder(line: &str, want: bool) {
        let words = std::iter::once("mcp-host").chain(line.split(' '));
        let Arguments { global, command: Command::Serve(args) } = Arguments::try_parse_from(words).unwrap()
        else {
            panic!("{line}");
        };
        assert_eq!(depends_on_folder(&global, &args), want, "{line}");
    }

    #[test]
    fn sh_002_working_folder_counts_unless_all_paths_are_absolute() {
        check_folder("serve --stdio --shared", true);
        check_folder("serve mcp.json --stdio --shared", true);
        check_folder("serve /p/mcp.json --stdio --shared", false);
        check_folder("serve /p/.minds/mcp.yaml --stdio --shared --audit /var/log/a", false);
        check_folder("serve /p/mcp.json --stdio --shared --audit a", true);
        check_folder("serve /p/mcp.json --stdio --shared --env-file e", true);
        // Its dialect is found by content only, or is one whose servers start in the folder of the caller.
        check_folder("serve /p/other.json --stdio --shared", true);
        check_folder("serve /p/mcp.json --stdio --shared --dialect acp", true);
        check_folder("serve /h/.codeium/windsurf/mcp_config.json --stdio --shared", true);
    }
}
