//! The identity of what a server starts or connects to: its fingerprint, and its record for a lock file.
//!
//! One function computes both. The fingerprint is private to the user, and covers the program, the arguments, the URL,
//! the working directory, the sandbox, the names of variables and headers, what the files of the project state as their
//! values, and the content of scripts that lie in the project. The record is shared with the project: it has no values
//! of variables and headers, no secrets in arguments and URLs, and paths relative to the project. Neither covers the
//! values of the user's own variables, so that a renewed token needs no new approval.

mod files;
mod shown;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{
    ClientCredentials, ConfigValue, Endpoint, EnvInheritance, Passthrough, Secret, StdioEndpoint, StdioSpec,
    TemplatePart, TransportSpec, UrlEndpoint, UrlSpec,
};
use mcp_host_registry::{ProgramPart, ProgramRecord};
use mcp_host_transport::{ProgramSearch, ProgramSearchResult, find_program};

use crate::state::packages::package;
pub(crate) use files::FileAccess;
use files::{hash_file, normalized};
use shown::{ShownPaths, shown_arguments, shown_url};

/// The longest word of a command line that may be the path of a script.
const MAX_PATH_BYTES: usize = 4096;

/// The variable through which a server receives its configuration.
const CONFIG_VARIABLE: &str = "MCP_CONFIG";

/// Variables that choose which code runs. Their values are no secrets, and a record has them.
const CODE_VARIABLES: &[&str] = &[
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "ENV",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "NPM_CONFIG_REGISTRY",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "PIP_INDEX_URL",
    "DOCKER_HOST",
];

/// The extensions of code.
const CODE_EXTENSIONS: &[&str] = &[
    "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "py", "pyz", "sh", "bash", "zsh", "rb", "pl",
    "php", "lua", "jar", "ps1", "bat", "cmd", "exe", "wasm", "so", "dll", "dylib",
];

/// The beginnings of the names of interpreters. The first argument of such a program is a script.
const INTERPRETERS: &[&str] =
    &["node", "python", "deno", "bun", "ruby", "perl", "php", "lua", "sh", "bash", "zsh", "dash", "java"];

/// The identity of what a server starts or connects to.
pub(crate) struct StartIdentity {
    /// The hash of everything that counts.
    pub(crate) fingerprint: String,
    /// What of it a lock file records.
    pub(crate) record: ProgramRecord,
}

/// Returns the identity of a server as it would start now. Reads files, and blocks.
pub(crate) fn start_identity(server: &ResolvedServer) -> StartIdentity {
    let files = FileAccess {
        current: &env::current_dir().unwrap_or_default(),
        hash: &hash_file,
        resolve: &|path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        find: &|command, path, folder| match find_program(command, ProgramSearch::new(path, folder)) {
            ProgramSearchResult::Found(found) => Some(found),
            _ => None,
        },
    };
    identity(server, &files)
}

/// Computes the identity.
pub(crate) fn identity(server: &ResolvedServer, files: &FileAccess<'_>) -> StartIdentity {
    let mut fields = Fields::default();
    fields.add("config", server.spec.config.as_ref().map_or("", passthrough_text));
    if server.spec.config.is_some() {
        fields.show(ProgramPart::Settings, "config");
    }
    fields.show(ProgramPart::Transport, server.endpoint.kind().as_str());
    match (&server.endpoint, &server.spec.transport) {
        (Endpoint::Stdio(endpoint), transport) => {
            let spec = match transport {
                TransportSpec::Stdio(spec) => Some(spec),
                TransportSpec::Sse(_) | TransportSpec::WebSocket(_) | TransportSpec::Http(_) => None,
            };
            let paths = ShownPaths::new(files.current.join(project_folder(server)), files);
            add_process(&mut fields, endpoint, spec, &paths);
            add_files(&mut fields, endpoint, &paths);
        }
        (
            Endpoint::Sse(endpoint) | Endpoint::WebSocket(endpoint) | Endpoint::Http(endpoint),
            TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec),
        ) => add_url(&mut fields, server, endpoint, Some(spec)),
        (
            Endpoint::Sse(endpoint) | Endpoint::WebSocket(endpoint) | Endpoint::Http(endpoint),
            TransportSpec::Stdio(_),
        ) => add_url(&mut fields, server, endpoint, None),
    }
    for name in &server.secrets.names {
        fields.add("secret", name);
    }
    fields.finish()
}

fn add_process(
    fields: &mut Fields,
    endpoint: &StdioEndpoint,
    spec: Option<&StdioSpec>,
    paths: &ShownPaths<'_>,
) {
    fields.add("command", &endpoint.command);
    fields.show(ProgramPart::Command, paths.text(&endpoint.command));
    for argument in &endpoint.args {
        fields.add("argument", argument.expose());
    }
    let written_args = spec.map_or(&[][..], |it| &it.args[..]);
    for argument in shown_arguments(&endpoint.args, written_args) {
        fields.show(ProgramPart::Arguments, paths.text(&argument));
    }
    let words: Vec<&str> = endpoint.args.iter().map(Secret::expose).collect();
    if let Some(package) = package(&endpoint.command, &words) {
        fields.show(ProgramPart::Package, package.to_string());
    }
    fields.add("folder", &endpoint.cwd.as_deref().unwrap_or(Path::new("")).to_string_lossy());
    if let Some(folder) = &endpoint.cwd {
        fields.show(ProgramPart::Directory, paths.path(&paths.files.current.join(folder)));
    }
    fields.add("inherited", &format!("{:?}", endpoint.inherit));
    match endpoint.inherit {
        EnvInheritance::Safe => {}
        EnvInheritance::None => fields.show(ProgramPart::Settings, "inherits none".to_owned()),
        EnvInheritance::All => fields.show(ProgramPart::Settings, "inherits all".to_owned()),
    }
    // Not without a sandbox, so that earlier approvals of servers without one stay valid.
    if let Some(sandbox) = &endpoint.sandbox {
        fields.add("sandbox", &sandbox.to_json());
        fields.show(ProgramPart::Settings, format!("sandbox {}", paths.text(&sandbox.to_json())));
    }
    let written = spec.map_or(&[][..], |it| &it.env[..]);
    let mut variables: Vec<(&str, String)> = Vec::new();
    for (name, value) in &endpoint.env {
        let is_written = written.iter().any(|it| it.0 == *name);
        // What is not in the entry comes from a variable file of the project.
        if !is_written && name != CONFIG_VARIABLE {
            variables.push((name, value.expose().to_owned()));
        }
    }
    variables.extend(written.iter().map(|(name, value)| (name.as_str(), written_text(value))));
    variables.sort();
    for (name, value) in variables {
        fields.add("variable", name);
        fields.add("value", &value);
        let is_code = CODE_VARIABLES.iter().any(|it| it.eq_ignore_ascii_case(name));
        let shown = if is_code { paths.text(&format!("{name}={value}")) } else { name.to_owned() };
        fields.show(ProgramPart::Variables, shown);
    }
}

/// Adds the scripts and the program, if they lie in the project.
fn add_files(fields: &mut Fields, endpoint: &StdioEndpoint, paths: &ShownPaths<'_>) {
    let files = paths.files;
    let folder = endpoint.cwd.clone().unwrap_or_else(|| files.current.to_owned());
    let folder = normalized(&files.current.join(folder));
    let scripts = script_paths(endpoint, &folder);
    for path in &scripts {
        if !path.starts_with(&paths.project) && !path.starts_with(&folder) {
            continue;
        }
        if let Some(hash) = (files.hash)(path) {
            add_file(fields, "script", path, &hash);
            // Data files, such as a database, change while a server runs.
            if is_code(endpoint, path, &folder) {
                fields.show(ProgramPart::Files, paths.file(path, &hash));
            }
        }
    }
    let configured = endpoint.env.iter().rev().find(|it| it.0 == "PATH").map(|it| it.1.expose().to_owned());
    let search = configured.or_else(|| env::var("PATH").ok()).unwrap_or_default();
    // A program of the project that `PATH` leads to is one of its files, too.
    if let Some(program) = (files.find)(&endpoint.command, &search, &folder) {
        let program = normalized(&folder.join(program));
        if program.starts_with(&paths.project)
            && !scripts.contains(&program)
            && let Some(hash) = (files.hash)(&program)
        {
            add_file(fields, "program", &program, &hash);
            fields.show(ProgramPart::Files, paths.file(&program, &hash));
        }
    }
}

/// Whether a file of a command line is code: the program, the script of an interpreter, or a file that is named so.
fn is_code(endpoint: &StdioEndpoint, path: &Path, folder: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if CODE_EXTENSIONS.iter().any(|it| it.eq_ignore_ascii_case(extension)) {
        return true;
    }
    let names_path = |word: &str| normalized(&folder.join(word)) == path;
    let program = Path::new(&endpoint.command).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_interpreter = INTERPRETERS.iter().any(|it| program.starts_with(it));
    let script = endpoint.args.iter().map(Secret::expose).find(|it| !it.starts_with('-'));
    names_path(&endpoint.command) || (is_interpreter && script.is_some_and(names_path))
}

fn add_file(fields: &mut Fields, name: &str, path: &Path, hash: &blake3::Hash) {
    fields.add(name, &path.to_string_lossy());
    fields.add("content", hash.to_hex().as_str());
}

fn add_url(fields: &mut Fields, server: &ResolvedServer, endpoint: &UrlEndpoint, spec: Option<&UrlSpec>) {
    fields.add("transport", server.endpoint.kind().as_str());
    let reads_secrets = !server.secrets.names.is_empty();
    match spec.map(|it| &it.url).filter(|it| reads_secrets && has_secret(it)) {
        // The query has a secret.
        Some(written) => {
            let mut url = endpoint.url.clone();
            url.set_query(None);
            fields.add("url", url.as_str());
            fields.add("written", &written_text(written));
        }
        None => fields.add("url", endpoint.url.as_str()),
    }
    fields.show(ProgramPart::Url, shown_url(endpoint));
    let mut headers: Vec<(&str, String)> = match spec {
        Some(spec) => spec.headers.iter().map(|(name, value)| (name.as_str(), written_text(value))).collect(),
        None => {
            endpoint.headers.iter().map(|(name, value)| (name.as_str(), value.expose().to_owned())).collect()
        }
    };
    headers.sort();
    for (name, value) in headers {
        fields.add("header", name);
        fields.show(ProgramPart::Headers, name);
        fields.add("value", &value);
    }
    if let Some(ClientCredentials { grant, client_id, scopes, issuer, .. }) = &endpoint.client_credentials {
        fields.add("grant", &format!("{grant:?}"));
        fields.add("client", client_id);
        fields.add("scopes", &scopes.join(" "));
        fields.add("issuer", issuer);
        let login = format!("login {grant:?} client {client_id} scopes {} issuer {issuer}", scopes.join(" "));
        fields.show(ProgramPart::Settings, login);
    }
}

/// The paths that the words of a command line may name, from this folder.
fn script_paths(endpoint: &StdioEndpoint, folder: &Path) -> Vec<PathBuf> {
    let command = Some(endpoint.command.as_str()).filter(|it| it.contains('/'));
    let words = command.into_iter().chain(endpoint.args.iter().map(Secret::expose));
    // `--config=x.js` names a file too.
    let parts = words.flat_map(|word| [Some(word), word.split_once('=').map(|it| it.1)]);
    let parts = parts.flatten().filter(|it| !it.is_empty() && it.len() <= MAX_PATH_BYTES);
    parts.map(|it| normalized(&folder.join(it))).collect()
}

/// The folder of the project that a server's file belongs to: a folder such as `.vscode` lies in it.
fn project_folder(server: &ResolvedServer) -> PathBuf {
    let origin = &server.spec.origin;
    if let Some(project) = &origin.project {
        return PathBuf::from(project);
    }
    let folder = Path::new(&origin.file).parent().unwrap_or(Path::new(""));
    let is_hidden = |name: &OsStr| name.to_string_lossy().starts_with('.') && name != "." && name != "..";
    let hidden = folder.ancestors().take(2).find(|it| it.file_name().is_some_and(is_hidden));
    hidden.and_then(Path::parent).unwrap_or(folder).to_owned()
}

/// Whether a value has a secret of the user, which changes without a new approval.
fn has_secret(value: &ConfigValue) -> bool {
    let ConfigValue::Template(parts) = value else { return false };
    parts.iter().any(|it| matches!(it, TemplatePart::Secret(_) | TemplatePart::Input(_)))
}

/// A value as the file has it: references stay references.
fn written_text(value: &ConfigValue) -> String {
    let part_text = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => format!("'{}'", text.expose()),
        TemplatePart::Variable(name) => format!("${name}"),
        TemplatePart::OptionalVariable(name) => format!("${name}?"),
        TemplatePart::VariableOr { name, default } => format!("${name}-'{}'", default.expose()),
        TemplatePart::Input(id) => format!("input {id}"),
        TemplatePart::File(path) => format!("file {path}"),
        TemplatePart::Secret(name) => format!("secret {name}"),
    };
    match value {
        ConfigValue::Literal(text) => format!("'{}'", text.expose()),
        ConfigValue::HostEnv { name, prefix } => format!("'{}' ${name}", prefix.expose()),
        ConfigValue::Template(parts) => parts.iter().map(part_text).collect::<Vec<_>>().join(" "),
    }
}

fn passthrough_text(config: &Passthrough) -> &str {
    match config {
        Passthrough::Literal(json) | Passthrough::Template(json) => json.as_str(),
    }
}

/// The fields of an identity. In the hash each name and value has its length before it, so that no two lists of fields
/// are alike.
#[derive(Default)]
struct Fields {
    hasher: blake3::Hasher,
    record: ProgramRecord,
}

impl Fields {
    /// Adds a field to the fingerprint.
    fn add(&mut self, name: &str, value: &str) {
        for text in [name, value] {
            self.hasher.update(&(text.len() as u64).to_le_bytes());
            self.hasher.update(text.as_bytes());
        }
    }

    /// Adds a text without secrets to the record.
    fn show(&mut self, part: ProgramPart, text: impl Into<String>) {
        self.record.add(part, text);
    }

    fn finish(self) -> StartIdentity {
        StartIdentity { fingerprint: self.hasher.finalize().to_hex().to_string(), record: self.record }
    }
}
