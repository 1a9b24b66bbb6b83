//! The request of `add`: the server that the command line describes.

use std::path::{Path, PathBuf};

use mcp_host_config::{
    Document, NewServer, NewTransport, PackageKind, Profile, PublishedServer, UrlTransportKind,
    parse_server_json, propose_sandbox, read,
};
use mcp_host_model::{Sandbox, ServerId, ServerSpec, Severity, TransportSpec};
use serde_json::{Value, json};

use super::positional::{AddWords, Description, WordSource, read_words};
use crate::args::{AddArgs, SandboxChoice, TransportName};
use crate::commands::files::edit::EditMode;
use crate::config::locate::names_config;
use crate::runtime::bounded_read::{input_name, read_file};

/// The maximum size of a `server.json`, in bytes.
const MAX_SERVER_JSON: u64 = 2 << 20;

/// A server to add to a file.
pub(super) struct AddRequest {
    pub(super) file: PathBuf,
    pub(super) server: AddedServer,
    pub(super) sandbox: Option<SandboxChoice>,
    pub(super) mode: EditMode,
    /// The variables that the server needs, each as `NAME: description`.
    pub(super) required_variables: Vec<String>,
    /// The names of the variables that hold secrets.
    pub(super) secrets: Vec<String>,
}

/// A server that is added.
pub(super) enum AddedServer {
    /// It is made from a few values.
    New(NewServer),
    /// It is read from an entry of an mcp.json.
    Entry(Box<ServerSpec>),
}

impl AddedServer {
    /// The name of the server.
    pub(super) fn name(&self) -> &str {
        match self {
            AddedServer::New(server) => server.id.as_str(),
            AddedServer::Entry(spec) => spec.id.as_str(),
        }
    }

    /// The spec for a file of `profile`, whose editor prompts for the variables `prompted`.
    pub(super) fn into_spec(
        self,
        profile: Profile,
        prompted: &[String],
        sandbox: Option<SandboxChoice>,
    ) -> ServerSpec {
        let mut spec = match self {
            AddedServer::New(server) => server.with_inputs_for(prompted).into_spec(profile),
            AddedServer::Entry(spec) => *spec,
        };
        if let (Some(choice), TransportSpec::Stdio(stdio)) = (sandbox, &mut spec.transport) {
            stdio.sandbox = Some(match choice {
                SandboxChoice::Proposed => propose_sandbox(&stdio.command),
                SandboxChoice::Preset(preset) => Sandbox::new(preset),
            });
        }
        spec
    }
}

/// What the server is: one of the options, or the words.
enum Source {
    Command(String),
    Package(PackageKind, String),
    ServerJson(PathBuf),
    Words(WordSource),
}

/// Builds the request from the arguments, and reads a `server.json` if they name one. The error is a message for
/// the user.
pub(super) fn build_request(args: AddArgs) -> Result<AddRequest, String> {
    let AddArgs {
        file,
        server,
        words,
        program,
        command,
        npm,
        pypi,
        image,
        server_json,
        args,
        env,
        url,
        transport,
        header,
        bearer_token_env_var,
        description,
        sandbox,
        dry_run,
    } = args;
    let words: Vec<String> = file.into_iter().chain(server).chain(words).collect();
    let package = |kind, name: Option<String>| name.map(|name| Source::Package(kind, name));
    let option = command
        .map(Source::Command)
        .or(package(PackageKind::Npm, npm))
        .or(package(PackageKind::Pypi, pypi))
        .or(package(PackageKind::Oci, image))
        .or(server_json.map(Source::ServerJson))
        .or(url.map(|url| Source::Words(WordSource::Url(url))));
    let place = if option.is_some() { Description::Option } else { Description::Words };
    let AddWords { file, server: name, source: words } = read_words(words, program, place, &names_config)?;
    let source = match (option, words) {
        (Some(_), Some(_)) => {
            return Err("the server is described twice: by an option and by words".to_owned());
        }
        (Some(source), None) => source,
        (None, Some(words)) => Source::Words(words),
        (None, None) => {
            return Err("what should be added? Write `add NAME -- COMMAND ARGS` or `add NAME URL`".to_owned());
        }
    };
    let mut headers = read_headers(header)?;
    headers
        .extend(bearer_token_env_var.map(|name| ("Authorization".to_owned(), format!("Bearer ${{{name}}}"))));
    let env = read_variables(env)?;
    check_options(&source, transport, &headers, &env)?;
    if sandbox.is_some() && matches!(source, Source::Words(WordSource::Url(_))) {
        return Err("`--sandbox` is for a program".to_owned());
    }
    let mode = EditMode::new(dry_run);
    let options = ServerOptions { args, env, headers, transport };
    let described = match source {
        Source::Command(command) => {
            let name = server_name_from_command(&command, &options.args);
            DescribedServer::new(name, stdio(command, options.args, options.env))
        }
        Source::Package(kind, package) => {
            let transport = kind.transport(&package, options.args, options.env);
            DescribedServer::new(server_name_from_package(&package), transport)
        }
        Source::ServerJson(path) => read_published_server(&path)?,
        Source::Words(WordSource::Command(words)) => {
            let mut words = words.into_iter();
            let command = words.next().unwrap_or_default();
            let args: Vec<String> = words.chain(options.args).collect();
            DescribedServer::new(server_name_from_command(&command, &args), stdio(command, args, options.env))
        }
        Source::Words(WordSource::Url(url)) => options.describe_url(url),
        Source::Words(WordSource::Json(json)) => {
            let server = AddedServer::Entry(Box::new(read_entry(name, &json)?));
            return Ok(AddRequest {
                file,
                server,
                sandbox,
                mode,
                required_variables: Vec::new(),
                secrets: Vec::new(),
            });
        }
    };
    let DescribedServer { name: default_name, transport, description: own, required_variables, secrets } =
        described;
    let name = name.unwrap_or(default_name);
    let id =
        ServerId::parse(&name).map_err(|error| format!("{error}; give the server's name after the file"))?;
    let mut server = NewServer::new(id, transport);
    server.description = description.or(own);
    let server = AddedServer::New(server);
    Ok(AddRequest { file, server, sandbox, mode, required_variables, secrets })
}

/// The options of the command line that belong to the server.
struct ServerOptions {
    args: Vec<String>,
    env: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    transport: Option<TransportName>,
}

impl ServerOptions {
    fn describe_url(self, url: String) -> DescribedServer {
        let kind = match self.transport {
            Some(TransportName::Url(kind)) => kind,
            Some(TransportName::Stdio) | None => UrlTransportKind::guess(&url),
        };
        let name = server_name_from_url(&url);
        DescribedServer::new(name, NewTransport::Url { kind, url, headers: self.headers })
    }
}

/// A server as its source describes it.
struct DescribedServer {
    /// The name, unless the command line states one.
    name: String,
    transport: NewTransport,
    /// The description, unless the command line states one.
    description: Option<String>,
    required_variables: Vec<String>,
    secrets: Vec<String>,
}

impl DescribedServer {
    fn new(name: String, transport: NewTransport) -> DescribedServer {
        let (required_variables, secrets) = (Vec::new(), Vec::new());
        DescribedServer { name, transport, description: None, required_variables, secrets }
    }
}

/// Reads a server from a `server.json`.
fn read_published_server(path: &Path) -> Result<DescribedServer, String> {
    let text = read_file(path, MAX_SERVER_JSON)
        .map_err(|error| format!("could not read {}: {error}", input_name(path)))?;
    let server = parse_server_json(&text).map_err(|error| format!("{}: {error}", input_name(path)))?;
    let PublishedServer { name, description, transport, required_values, secret_variables, .. } = server;
    let (required_variables, secrets) = (required_values, secret_variables);
    Ok(DescribedServer { name, transport, description, required_variables, secrets })
}

fn stdio(command: String, args: Vec<String>, env: Vec<(String, String)>) -> NewTransport {
    NewTransport::Stdio { command, args, env }
}

/// Fails if an option does not fit the server: headers are for URLs, variables for programs.
fn check_options(
    source: &Source,
    transport: Option<TransportName>,
    headers: &[(String, String)],
    env: &[(String, String)],
) -> Result<(), String> {
    let is_url = matches!(source, Source::Words(WordSource::Url(_)));
    let is_program =
        matches!(source, Source::Command(_) | Source::Package(..) | Source::Words(WordSource::Command(_)));
    let unfit = match transport {
        _ if !is_url && !headers.is_empty() => "`--header` is for a server with a URL",
        _ if !is_program && !env.is_empty() => {
            "`--env` is for a program; a server with a URL takes `--header`"
        }
        Some(TransportName::Url(_)) if !is_url => "this transport is for a server with a URL",
        Some(TransportName::Stdio) if !is_program => "the transport `stdio` is for a program",
        Some(TransportName::Url(_) | TransportName::Stdio) | None => return Ok(()),
    };
    Err(unfit.to_owned())
}

/// Reads a server from its entry of an mcp.json. Its name is `name`, else that in the entry.
fn read_entry(name: Option<String>, json: &str) -> Result<ServerSpec, String> {
    let mut entry: Value = serde_json::from_str(json)
        .map_err(|error| format!("the entry is not valid JSON: {}", error_position(&error)))?;
    let own_name = entry.as_object_mut().and_then(|entry| entry.remove("name"));
    let own_name = own_name.and_then(|it| it.as_str().map(str::to_owned));
    let name = name.or(own_name).ok_or("the entry has no name: write it before the entry")?;
    let text = json!({ "mcpServers": { name: entry } }).to_string();
    let mut reading = read(&Document::new("mcp.json", &text, Profile::McpJson));
    let error = reading.diagnostics.iter().find(|it| it.severity == Severity::Error);
    match (reading.servers.pop(), error) {
        (Some(spec), None) => Ok(spec),
        (_, Some(error)) => {
            let help = error.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            Err(format!("the entry has a mistake: {}{help}", error.message))
        }
        (None, None) => Err("the entry has no server".to_owned()),
    }
}

/// Where a text is no JSON. The text itself may be a secret.
fn error_position(error: &serde_json::Error) -> String {
    format!("line {} column {}", error.line(), error.column())
}

/// Parses variables of the form `NAME=value`. An error does not repeat the text, which may be a secret.
fn read_variables(texts: Vec<String>) -> Result<Vec<(String, String)>, String> {
    let pair = |text: String| {
        let (name, value) =
            text.split_once('=').ok_or("`--env` needs NAME=VALUE, but one value has no `=`")?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.into_iter().map(pair).collect()
}

/// Parses headers of the form `Name: value` or `Name=value`. An error does not repeat the text, which may be a secret.
fn read_headers(texts: Vec<String>) -> Result<Vec<(String, String)>, String> {
    let pair = |text: String| {
        let (name, value) = text
            .split_once([':', '='])
            .ok_or("`--header` needs \"NAME: VALUE\", but one value has no `:`")?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    texts.into_iter().map(pair).collect()
}

/// A short name for a program: that of its package, if it is known to start one.
fn server_name_from_command(command: &str, args: &[String]) -> String {
    let program = Path::new(command).file_stem().and_then(|it| it.to_str()).unwrap_or(command);
    let package = match program {
        "npx" | "bunx" | "uvx" => args.iter().find(|it| !it.starts_with('-')),
        _ => None,
    };
    package.map_or_else(|| program.to_owned(), |package| server_name_from_package(package))
}

/// A short name for a package: `@scope/mcp-server-x@1` is `x`.
fn server_name_from_package(package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or_default();
    let bare = last.split(['@', ':', '=', '<', '>', '~', '[']).next().unwrap_or_default();
    let stripped = ["mcp-server-", "server-", "mcp-"].iter().find_map(|prefix| bare.strip_prefix(prefix));
    let name = stripped.or_else(|| bare.strip_suffix("-mcp-server")).or_else(|| bare.strip_suffix("-mcp"));
    name.filter(|name| !name.is_empty()).unwrap_or(bare).to_owned()
}

/// A short name for the server of a URL: `https://mcp.example.com/x` is `example`.
fn server_name_from_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let label = host.split('.').find(|label| !["www", "mcp", "api"].contains(label));
    label.unwrap_or(host).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_packages_and_urls() {
        let check = |package: &str, want: &str| assert_eq!(server_name_from_package(package), want);
        check("@modelcontextprotocol/server-everything@1.2", "everything");
        check("mcp-server-git==1.0", "git");
        check("firecrawl-mcp", "firecrawl");
        check("docker.io/mcp/time:latest", "time");
        check("server-", "server-");
        let check = |url: &str, want: &str| assert_eq!(server_name_from_url(url), want);
        check("https://mcp.example.com/x", "example");
        check("http://127.0.0.1:8080/mcp", "127");
        check("https://u:p@api.github.com", "github");
        let check = |words: &str, want: &str| {
            let mut words = words.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            assert_eq!(server_name_from_command(&command, &words.collect::<Vec<_>>()), want);
        };
        check("npx -y @scope/mcp-server-x@1", "x");
        check("/usr/bin/uvx mcp-server-git", "git");
        check("./server.py --port 1", "server");
        check("npx -y", "npx");
    }

    /// RPT-104
    #[test]
    fn headers_and_variables_are_read() {
        let headers = |text: &str| read_headers(vec![text.to_owned()]);
        let pair = |name: &str, value: &str| Ok(vec![(name.to_owned(), value.to_owned())]);
        assert_eq!(headers("Authorization: Bearer a=b"), pair("Authorization", "Bearer a=b"));
        assert_eq!(headers("X-Key=a:b"), pair("X-Key", "a:b"));
        assert!(!headers("hunter2").unwrap_err().contains("hunter2"));
        assert_eq!(read_variables(vec!["A=b=c".to_owned()]), pair("A", "b=c"));
        assert!(!read_variables(vec!["hunter2".to_owned()]).unwrap_err().contains("hunter2"));
    }

    /// RPT-104
    #[test]
    fn entry_in_json_is_read() {
        let name = |name: Option<&str>, json: &str| {
            read_entry(name.map(str::to_owned), json).map(|spec| spec.id.to_string())
        };
        assert_eq!(name(None, r#"{"name": "a", "command": "x"}"#), Ok("a".to_owned()));
        assert_eq!(name(Some("b"), r#"{"name": "a", "command": "x"}"#), Ok("b".to_owned()));
        let message = |json: &str| name(Some("a"), json).unwrap_err();
        assert!(
            message("{hunter2").starts_with("the entry is not valid JSON: line 1 column"),
            "{}",
            message("{hunter2")
        );
        assert!(!message("{hunter2").contains("hunter2"));
        assert!(
            message("{}").starts_with("the entry has a mistake: a server needs a 'command'"),
            "{}",
            message("{}")
        );
        assert_eq!(name(None, "{}"), Err("the entry has no name: write it before the entry".to_owned()));
    }
}
