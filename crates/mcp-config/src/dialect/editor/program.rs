//! Finds the program of a file (DIA-01).
//!
//! If the path of a file is not in the table, the content of the file indicates the program. Otherwise the program is
//! [`UNKNOWN`], with the conventions that most programs share.

use std::path::{Path, PathBuf};

use crate::dialect::editor::conventions::{Program, ShellVariables};
use crate::dialect::editor::programs::{
    CONTINUE, CRUSH, DEV_CONTAINER, DEV_CONTAINER_SERVERS, GEMINI_CLI, LIBRE_CHAT, LIBRE_CHAT_KEYS, PROGRAMS,
    UNKNOWN,
};
use crate::syntax::{Node, child_pointer, last_key, pointer_segments};

/// Whether the file at a path belongs to a user, and not to a workspace.
pub fn is_user_file(path: &Path, home: Option<&Path>) -> bool {
    let in_home = home.and_then(|it| path.strip_prefix(it).ok());
    PROGRAMS.iter().any(|it| {
        it.home_files.iter().any(|file| in_home == Some(Path::new(file)))
            || it.user_path_ends().any(|end| path.ends_with(end))
    })
}

impl Program {
    /// The program of the file at a path. `None` if neither the path nor the file name is in the table.
    pub(crate) fn of_file(path: &str) -> Option<&'static Program> {
        let path = path.replace('\\', "/");
        let is_end = |end: &&str| {
            path.strip_suffix(*end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        PROGRAMS.iter().find(|it| it.path_ends().any(&is_end))
    }

    /// The ends of the paths of its files.
    pub(super) fn path_ends(&self) -> impl Iterator<Item = &'static &'static str> {
        self.home_files.iter().chain(self.files).chain(self.user_path_ends())
    }

    /// The ends of the paths of its files that belong to a user, in whatever folder.
    fn user_path_ends(&self) -> impl Iterator<Item = &'static &'static str> {
        self.user_files.iter().chain(self.app_data_files).chain(self.local_app_data_files)
    }

    /// Whether the program is known, and is the one that the path of a file belongs to. Compares the names, because a
    /// program with two kinds of files has two entries.
    pub(super) fn has_file_of(&self, path_program: Option<&Program>) -> bool {
        !self.is_unknown() && path_program.is_some_and(|it| it.name == self.name)
    }

    /// The program of the servers at the pointer `at` of a file: that of the path, unless the key of the servers or the
    /// content of the file is another program's.
    pub(crate) fn choose(path_program: Option<&'static Program>, root: &Node, at: &str) -> &'static Program {
        let path_program = path_program.filter(|it| !it.is_unknown());
        let keys = [pointer_segments(at).collect::<Vec<_>>().join("."), last_key(at)];
        // Many programs have the usual key.
        let of_key = |key: &String| PROGRAMS.iter().find(|it| it.key == key && it.key != UNKNOWN.key);
        match (path_program, keys.iter().find_map(of_key)) {
            (Some(program), _) if keys.iter().any(|it| program.key == it) => program,
            (_, Some(program)) => Program::of_content(root, at).unwrap_or(program),
            (Some(program), None) => program,
            (None, None) => Program::of_content(root, at).unwrap_or(&UNKNOWN),
        }
    }

    /// The program that the content of a file indicates, apart from the key of the servers.
    fn of_content(root: &Node, at: &str) -> Option<&'static Program> {
        let servers = root.at(at);
        let has = |key: &str| root.get(key).is_some();
        let entries = servers.and_then(Node::members).unwrap_or_default().iter().map(|it| &it.value);
        let mut texts = entries.clone().filter_map(|it| it.text_of("command"));
        match at {
            // opencode has this key too, and the program and its arguments as one list.
            "/mcp" if texts.next().is_some() => Some(&CRUSH),
            "/mcpServers" | "" if entries.clone().any(|it| it.get("httpUrl").is_some()) => Some(&GEMINI_CLI),
            "/mcpServers" if has("schema") && servers.is_none_or(|it| it.members().is_none()) => {
                Some(&CONTINUE)
            }
            "/mcpServers" if has("version") && LIBRE_CHAT_KEYS.iter().any(|it| has(it)) => Some(&LIBRE_CHAT),
            _ => None,
        }
    }

    /// The names of the programs that replace `$NAME`.
    pub(crate) fn names_with_shell_variables() -> Vec<&'static str> {
        let replacing = PROGRAMS.iter().filter(|it| it.shell_variables != ShellVariables::Literal);
        let mut res: Vec<_> = replacing.map(|it| it.name).collect();
        res.dedup();
        res
    }

    /// The pointer to the servers of its files.
    pub(crate) fn servers_pointer(&self) -> String {
        if self.has_key_at_root() { child_pointer("", self.key) } else { DEV_CONTAINER_SERVERS.to_owned() }
    }

    /// Whether its servers are under a top-level key.
    pub(super) fn has_key_at_root(&self) -> bool {
        self.key != DEV_CONTAINER.key
    }

    /// Whether this is [`UNKNOWN`], or a row of the table with its name.
    pub(crate) fn is_unknown(&self) -> bool {
        self.name == UNKNOWN.name
    }
}

/// The top-level keys of servers, each once; the usual one first.
pub(crate) fn server_keys() -> impl Iterator<Item = &'static str> {
    let has_new_key = |(index, program): &(usize, &Program)| {
        ![UNKNOWN.key, DEV_CONTAINER.key].contains(&program.key)
            && PROGRAMS[..*index].iter().all(|it| it.key != program.key)
    };
    let others = PROGRAMS.iter().enumerate().filter(has_new_key).map(|it| it.1.key);
    std::iter::once(UNKNOWN.key).chain(others)
}

/// The name of the program that a file belongs to by its path, such as `.gemini/settings.json`.
pub fn program_of_path(path: &str) -> Option<&'static str> {
    Program::of_file(path).filter(|it| !it.is_unknown()).map(|it| it.name)
}

/// The folders of a user in which programs keep their settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserFolders {
    /// The home folder.
    pub home: PathBuf,
    /// The folders of settings: `%APPDATA%`, `~/.config` and `~/Library/Application Support`. A system has one of them.
    pub app_data: [PathBuf; 3],
    /// `%LOCALAPPDATA%`.
    pub local_app_data: PathBuf,
}

impl UserFolders {
    /// The folders of a user with this home folder and these variables. Windows stores the folders of settings in
    /// variables, because they can be elsewhere than in the home folder.
    pub fn new(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> UserFolders {
        let folder = |name: &str, usual: &str| {
            variable(name).filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| home.join(usual))
        };
        UserFolders {
            home: home.to_owned(),
            app_data: [
                folder("APPDATA", "AppData/Roaming"),
                home.join(".config"),
                home.join("Library/Application Support"),
            ],
            local_app_data: folder("LOCALAPPDATA", "AppData/Local"),
        }
    }
}

/// A file with servers of another program. It may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramFile {
    /// The name of the program.
    pub program: &'static str,
    /// The path.
    pub path: PathBuf,
}

/// The files of other programs, for all systems.
pub fn program_files(folders: &UserFolders) -> impl Iterator<Item = ProgramFile> {
    let UserFolders { home, app_data, local_app_data } = folders;
    PROGRAMS.iter().flat_map(move |program| {
        let app_data =
            app_data.iter().flat_map(|folder| program.app_data_files.iter().map(|it| folder.join(it)));
        let home = program.home_files.iter().map(|it| home.join(it));
        let local = program.local_app_data_files.iter().map(|it| local_app_data.join(it));
        home.chain(app_data).chain(local).map(|path| ProgramFile { program: program.name, path })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Syntax, parse_as};

    /// RPT-340
    #[test]
    fn rpt_340_files_of_programs_are_found_in_the_folders_of_windows() {
        let home = Path::new("C:/Users/Zoë B");
        let moved = |name: &str| (name == "APPDATA").then(|| PathBuf::from("D:/Profiles/zoe"));
        let files: Vec<_> = program_files(&UserFolders::new(home, moved)).collect();
        for (program, path) in [
            ("Claude Desktop", "D:/Profiles/zoe/Claude/claude_desktop_config.json"),
            (
                "Claude Desktop",
                "C:/Users/Zoë B/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/\
                 claude_desktop_config.json",
            ),
            ("VS Code", "D:/Profiles/zoe/Code/User/mcp.json"),
            ("VS Code", "D:/Profiles/zoe/Code - Insiders/User/mcp.json"),
            (
                "Cline",
                "D:/Profiles/zoe/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            ("Zed", "D:/Profiles/zoe/Zed/settings.json"),
            ("Goose", "D:/Profiles/zoe/Block/goose/config/config.yaml"),
            ("Crush", "C:/Users/Zoë B/AppData/Local/crush/crush.json"),
            ("Cursor", "C:/Users/Zoë B/.cursor/mcp.json"),
            ("Windsurf", "C:/Users/Zoë B/.codeium/windsurf/mcp_config.json"),
            ("Claude Code", "C:/Users/Zoë B/.claude.json"),
            ("Codex", "C:/Users/Zoë B/.codex/config.toml"),
            ("Gemini CLI", "C:/Users/Zoë B/.gemini/settings.json"),
            ("opencode", "C:/Users/Zoë B/.config/opencode/opencode.json"),
        ] {
            let file = ProgramFile { program, path: PathBuf::from(path) };
            assert!(files.contains(&file), "{file:?}");
            // The first program with the path of a file is its program.
            assert_eq!(Program::of_file(path).map(|it| it.name), Some(program), "{path}");
            assert!(is_user_file(Path::new(path), Some(home)), "{path}");
        }
        let unset: Vec<_> = program_files(&UserFolders::new(home, |_| None)).map(|it| it.path).collect();
        for path in ["AppData/Roaming", ".config", "Library/Application Support"] {
            assert!(unset.contains(&home.join(path).join("Claude/claude_desktop_config.json")), "{path}");
        }
    }

    #[track_caller]
    fn check(path: &str, key: &str, servers: &str, want: &str) {
        check_file(path, &child_pointer("", key), &format!("{{\"{key}\": {servers}}}"), want);
    }

    #[track_caller]
    fn check_file(path: &str, at: &str, text: &str, want: &str) {
        let root = parse_as(text, Syntax::JsonWithComments).root.unwrap();
        assert_eq!(Program::choose(Program::of_file(path), &root, at).name, want, "{path} {at} {text}");
    }

    #[test]
    fn dia_01_program_is_known_by_path_then_content() {
        for (path, want) in [
            (".vscode/mcp.json", "VS Code"),
            ("C:\\x\\Code\\User\\mcp.json", "VS Code"),
            ("/home/me/.cursor/mcp.json", "Cursor"),
            ("mcp_settings.json", "Roo Code"),
            ("x/.mcp.json", "Claude Code"),
            ("mcp.json", "an unknown program"),
            ("a.yaml", ""),
            ("settings.json", ""),
            (".kilo/kilo.jsonc", "Kilo Code"),
        ] {
            assert_eq!(Program::of_file(path).map_or("", |it| it.name), want, "{path}");
        }
        let plain = r#"{"a": {"url": "x"}}"#;
        let gemini = r#"{"a": {"url": "x"}, "b": {"httpUrl": "x"}}"#;
        check(".cursor/mcp.json", "mcpServers", plain, "Cursor");
        check(".cursor/mcp.json", "mcpServers", gemini, "Cursor");
        check("a.json", "mcpServers", plain, "an unknown program");
        check("mcp.json", "mcpServers", gemini, "Gemini CLI");
        // Visual Studio also has this file.
        check(".mcp.json", "servers", plain, "VS Code");
        check(".vscode/mcp.json", "mcpServers", plain, "VS Code");
        check("settings.json", "mcp.servers", plain, "VS Code");
        check("settings.json", "context_servers", plain, "Zed");
        check("a.json", "mcp", plain, "opencode");
        check("crush.json", "mcp", plain, "Crush");
        check("a.json", "mcp", r#"{"a": {"command": "x"}}"#, "Crush");
        check("opencode.json", "mcp", r#"{"a": {"command": "x"}}"#, "opencode");
        check("a.json", "mcp", r#"{"a": {"command": ["x"]}}"#, "opencode");
        check("a.toml", "mcp_servers", plain, "Codex");
        check("a.yaml", "extensions", plain, "Goose");
        check("a.json", "amp.mcpServers", plain, "Amp");
        let nested = r#"{"customizations": {"vscode": {"mcp": {"servers": {}}}}}"#;
        check_file("a.json", "/customizations/vscode/mcp/servers", nested, "Dev Containers");
        check_file("a.json", "/mcp/servers", r#"{"mcp": {"servers": {}}}"#, "VS Code");
        let assistant = r#"{"name": "a", "schema": "v1", "mcpServers": [{"name": "a", "command": "x"}]}"#;
        check_file("a.yaml", "/mcpServers", assistant, "Continue");
        check_file("mcp.json", "/mcpServers", r#"{"mcpServers": [{"command": "x"}]}"#, "an unknown program");
        let chat = r#"{"version": "1.2.1", "endpoints": {}, "mcpServers": {"a": {"url": "x"}}}"#;
        check_file("a.yaml", "/mcpServers", chat, "LibreChat");
        check_file("a.yaml", "/mcpServers", r#"{"version": 1, "mcpServers": {}}"#, "an unknown program");
        check_file("a.json", "", gemini, "Gemini CLI");
    }
}
