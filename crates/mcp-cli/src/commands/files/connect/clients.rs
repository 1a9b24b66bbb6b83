//! The clients of this user: the programs whose configuration files are known, and their files.

use std::env;
use std::path::{Path, PathBuf};

use mcp_host_config::{UserFolders, program_files, program_of_path};

/// A file of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientFile {
    /// The name of the program; the file name for a file of no known program.
    pub(super) program: String,
    /// The file, which may be missing.
    pub(super) path: PathBuf,
}

/// The files of all clients of this user that exist.
pub(super) fn existing_clients() -> Vec<ClientFile> {
    let home = env::home_dir().unwrap_or_default();
    known_files(&home).into_iter().filter(|it| it.path.is_file()).collect()
}

/// The files that a word of the command line names: those of a program, or a file. The error is a message for the
/// user. Reads the disk.
pub(super) fn find_clients(word: &str) -> Result<Vec<ClientFile>, String> {
    let path = Path::new(word);
    if word.contains(std::path::is_separator) || path.is_file() {
        let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let program = program_of_path(word).map(str::to_owned).or(file_name).unwrap_or_default();
        return Ok(vec![ClientFile { program, path: path.to_owned() }]);
    }
    let known = known_files(&env::home_dir().unwrap_or_default());
    choose_files(word, known, &|path| path.is_file(), &|path| path.is_dir())
}

/// The files of the program with this name: those that exist, else the first one whose folder exists.
fn choose_files(
    word: &str,
    known: Vec<ClientFile>,
    is_file: &dyn Fn(&Path) -> bool,
    is_folder: &dyn Fn(&Path) -> bool,
) -> Result<Vec<ClientFile>, String> {
    let mut names: Vec<String> = known.iter().map(|it| option_name(&it.program)).collect();
    names.dedup();
    let wanted = option_name(word);
    let files: Vec<ClientFile> = known.into_iter().filter(|it| option_name(&it.program) == wanted).collect();
    let Some(first) = files.first() else {
        return Err(format!("there is no client `{word}`; the clients are: {}", names.join(", ")));
    };
    let missing = format!(
        "{} is not installed for this user: there is no folder {}",
        first.program,
        first.path.parent().unwrap_or(Path::new("")).display()
    );
    let existing: Vec<ClientFile> = files.iter().filter(|it| is_file(&it.path)).cloned().collect();
    if !existing.is_empty() {
        return Ok(existing);
    }
    let new = files.into_iter().find(|it| it.path.parent().is_some_and(is_folder));
    new.map(|it| vec![it]).ok_or(missing)
}

/// The files of all known programs.
fn known_files(home: &Path) -> Vec<ClientFile> {
    let folders = UserFolders::new(home, |name| env::var_os(name).map(PathBuf::from));
    let file =
        |it: mcp_host_config::ProgramFile| ClientFile { program: it.program.to_owned(), path: it.path };
    program_files(&folders).map(file).collect()
}

/// The name of a program as it is typed: `claude-desktop`.
pub(super) fn option_name(program: &str) -> String {
    program.to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RPT-370
    #[test]
    fn rpt_370_client_is_found_by_its_name() {
        let known = || known_files(Path::new("/h"));
        let check = |word: &str, files: &[&str], folders: &[&str], want: &str| {
            let is_file = |path: &Path| files.iter().any(|it| Path::new("/h").join(it) == path);
            let is_folder = |path: &Path| folders.iter().any(|it| Path::new("/h").join(it) == path);
            let found = choose_files(word, known(), &is_file, &is_folder);
            let found = found
                .map(|it| it.iter().map(|it| it.path.display().to_string()).collect::<Vec<_>>().join(" "));
            assert_eq!(found.unwrap_or_else(|message| message), want, "{word}");
        };
        check("cursor", &[".cursor/mcp.json"], &[], "/h/.cursor/mcp.json");
        check("Claude Code", &[".claude.json"], &[], "/h/.claude.json");
        check("codex", &[], &[".codex"], "/h/.codex/config.toml");
        let both = [".config/Code/User/mcp.json", ".config/VSCodium/User/mcp.json"];
        check("vs-code", &both, &[], "/h/.config/Code/User/mcp.json /h/.config/VSCodium/User/mcp.json");
        check("zed", &[], &[], "Zed is not installed for this user: there is no folder /h/.config/zed");
        let unknown = choose_files("emacs", known(), &|_| false, &|_| false).unwrap_err();
        assert!(
            unknown.starts_with("there is no client `emacs`; the clients are: vs-code, cursor,"),
            "{unknown}"
        );
    }
}
