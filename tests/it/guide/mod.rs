//! The commands of the guide and of the README, executed as their pages show them (HD-SC1).
//!
//! The files of a page are written, its commands run in order, and their output is compared with the page. A page
//! declares what it needs besides the program.

mod page;
mod service;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use mcp_testkit::program::{Run, binary, installed_folder, installed_program, root, split_command_line};
use mcp_testkit::wait::block_until;
use page::{Block, Requirements, Step, agrees, blocks, links};

fn docs() -> PathBuf {
    root().join("docs")
}

fn text(page: &str) -> String {
    std::fs::read_to_string(docs().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The pages in the order of the book.
fn listed() -> Vec<String> {
    links(&text("SUMMARY.md"))
}

/// The page of the project.
const README: &str = "../README.md";

/// Every page below a folder, relative to `docs`.
fn found(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found(&path, into);
        } else if path.extension().is_some_and(|it| it == "md") {
            into.insert(path.strip_prefix(docs()).unwrap().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn every_page_is_in_the_summary_and_links_have_targets() {
    let mut pages = BTreeSet::new();
    found(&docs(), &mut pages);
    assert!(pages.remove("SUMMARY.md"));
    assert_eq!(listed().into_iter().collect::<BTreeSet<_>>(), pages);

    let mut seen = 0;
    for page in &pages {
        let folder = docs().join(page).parent().unwrap().to_owned();
        for link in links(&text(page)) {
            assert!(folder.join(&link).exists(), "{page} names {link}, which is not there");
            seen += 1;
        }
    }
    assert!(seen > 50, "the pages name each other: {seen} links");
}

/// The commands of the system that a page may have.
const SHELL_COMMANDS: [&str; 5] = ["cat", "curl", "grep", "kill", "mv"];
/// Those that change nothing.
const READING_COMMANDS: [&str; 3] = ["cat", "curl", "grep"];
/// How long such a command is repeated.
const REPETITION_LIMIT: Duration = Duration::from_secs(30);
const REPETITION_PAUSE: Duration = Duration::from_millis(50);

fn first_word(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

/// The installed npm servers for some commands.
struct Npm {
    modules: PathBuf,
    path: OsString,
}

impl Npm {
    fn find() -> Option<Npm> {
        let modules = installed_folder("MCP_HOST_NODE_MODULES")?;
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let own = binary().parent().expect("it is in a folder").to_owned();
        let paths = [modules.join(".bin"), own].into_iter().chain(std::env::split_paths(&inherited));
        Some(Npm { path: std::env::join_paths(paths).unwrap(), modules })
    }
}

/// Whether the kernel has what a sandbox needs. Only a server that is refused for that reason says that it has not.
fn kernel_has_landlock() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let entry = r#"{"command": "mcp-host", "args": ["demo-server"], "sandbox": "project"}"#;
    std::fs::write(folder.path().join("a.json"), format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#)).unwrap();
    let output = Run::new(folder.path(), folder.path(), &["tools", "a.json"]).finish();
    !output.stdout.contains("the kernel cannot apply its sandbox")
}

/// The execution of a page.
struct PageRun<'a> {
    page: &'a str,
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
    beside: Vec<Child>,
    code: Option<i32>,
    npm: Option<&'a Npm>,
}

impl Drop for PageRun<'_> {
    fn drop(&mut self) {
        for child in &mut self.beside {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl PageRun<'_> {
    fn file(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn step(&mut self, step: &Step) {
        let page = self.page;
        let printed = match step.command.as_str() {
            "echo $?" => format!("{}\n", self.code.expect("a command ended before it")),
            "wait $!" => self.wait(),
            command if SHELL_COMMANDS.contains(&first_word(command)) => self.shell(step),
            command => match command.strip_suffix(" &") {
                Some(command) => self.begin(command),
                None => self.run(command),
            },
        };
        assert!(
            agrees(&step.printed, &printed),
            "{page}: `{}` prints\n{printed}\nand the page says\n{}",
            step.command,
            step.printed
        );
    }

    /// The program with the arguments of the command, and with its input if it has one.
    fn command(&self, command: &str) -> Run {
        let command = command.replace("cargo run --", "mcp-host");
        let (command, input) = match command.split_once(" < ") {
            Some((command, input)) => (command, Some(input)),
            None => (command.as_str(), None),
        };
        let words = split_command_line(command);
        let (program, arguments) = words.split_first().expect("a command has a word");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (folder, state) = (self.folder.path(), self.state.path());
        let run = match program.as_str() {
            "mcp-host" => Run::new(folder, state, &arguments),
            "chmod" | "git" => Run::of_other_program(program, folder, state, &arguments),
            _ => panic!("{}: {command} is not run", self.page),
        };
        // The pages show the output on a terminal of this width.
        let mut res = run.env("COLUMNS", "100");
        if let Some(npm) = self.npm {
            res = res.env("PATH", &npm.path);
        }
        match input {
            Some(input) => res.input_file(std::fs::File::open(self.folder.path().join(input)).unwrap()),
            None => res,
        }
    }

    /// Runs a command of the system in a shell, in which `$!` is the last command in the background. One that
    /// only reads is repeated until its output is that of the page, because `serve` applies changes in the
    /// background.
    fn shell(&self, step: &Step) -> String {
        let last = self.beside.last().map(|child| child.id().to_string()).unwrap_or_default();
        let command = step.command.replace("$!", &last);
        let run = || {
            let output = Command::new("sh").args(["-c", &command]).current_dir(self.folder.path()).output();
            let output = output.expect("there is a shell");
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
        };
        let mut printed = run();
        if READING_COMMANDS.contains(&first_word(&command)) {
            let deadline = Instant::now() + REPETITION_LIMIT;
            while !agrees(&step.printed, &printed) && Instant::now() < deadline {
                std::thread::sleep(REPETITION_PAUSE);
                printed = run();
            }
        }
        printed
    }

    /// Waits for the end of the last command in the background, and returns what it printed to standard output.
    fn wait(&mut self) -> String {
        let child = self.beside.pop().expect("a command runs in the background");
        let output = child.wait_with_output().expect("it was started");
        self.code = output.status.code();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn run(&mut self, command: &str) -> String {
        let ran = self.command(command).finish();
        self.code = ran.code;
        ran.stderr + &ran.stdout
    }

    /// Starts a command in the background and waits until it listens.
    fn begin(&mut self, command: &str) -> String {
        self.beside.push(self.command(command).start());
        let words = split_command_line(command);
        let address = words.iter().find(|word| word.starts_with("127.0.0.1:")).expect("it listens somewhere");
        block_until(|| std::net::TcpStream::connect(address.as_str()).is_ok());
        String::new()
    }
}

#[test]
fn hd_sc1_the_commands_of_every_page_work() {
    let (npm, has_curl) = (Npm::find(), installed_program("curl"));
    let has_landlock = kernel_has_landlock();
    let mut seen = 0;
    for page in listed().iter().chain([&README.to_owned()]) {
        let mut reader = PageRun {
            page,
            folder: tempfile::tempdir().unwrap(),
            state: tempfile::tempdir().unwrap(),
            beside: Vec::new(),
            code: None,
            npm: npm.as_ref(),
        };
        std::os::unix::fs::symlink(root().join("examples"), reader.folder.path().join("examples")).unwrap();
        if let Some(npm) = &npm {
            std::os::unix::fs::symlink(&npm.modules, reader.folder.path().join("node_modules")).unwrap();
        }
        for block in blocks(page, &text(page)) {
            match block {
                Block::File { path, text } => reader.file(&path, &text),
                Block::Commands { needs: Requirements::Npm, .. } if npm.is_none() => {}
                Block::Commands { needs: Requirements::Curl, .. } if !has_curl => {}
                Block::Commands { needs: Requirements::Landlock, .. } if !has_landlock => {
                    eprintln!("SKIPPED: {page}: the kernel has no Landlock");
                }
                Block::Commands { needs: _, steps } => {
                    for step in &steps {
                        reader.step(step);
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(seen > 40, "the pages have commands: {seen}");
}
