//! `add`: a new server, in the words of a command line, of a package's name, or of what its authors publish; and a new
//! file for it, where there is none yet.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mcp_config::{
    Document, NewServer, NewTransport, PackageKind, Profile, PublishedServer, UrlTransportKind, WrittenFile,
    detect, parse_server_json, prompts_for_inputs, render_diff, write_servers,
};
use mcp_host::create_new;
use mcp_model::{Dialect, ServerId, ServerSpec};

use super::{Manner, Order, manner, run};
use crate::args::Format;
use crate::commands::next;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::source::Source;

/// The most bytes that a published server's file may have.
const MOST: u64 = 2 << 20;

/// The words of `add`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("reach").required(true).args(
    ["command", "url", "npm", "pypi", "image", "server_json"]
)))]
pub(crate) struct AddWords {
    /// The configuration, or the folder it is in; a file that is not there yet is made
    file: PathBuf,
    /// The new server's name; from its package or URL unless given
    server: Option<String>,
    /// The program to start
    #[arg(long, value_name = "PROGRAM")]
    command: Option<String>,
    /// A package of npm to start by npx, such as @modelcontextprotocol/server-everything@2026.7.4
    #[arg(long, value_name = "PACKAGE")]
    npm: Option<String>,
    /// A package of PyPI to start by uvx, such as mcp-server-git
    #[arg(long, value_name = "PACKAGE")]
    pypi: Option<String>,
    /// A container image to start by docker
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// What the server's authors publish: a file in the MCP registry's format server.json; `-` is standard input
    #[arg(long, value_name = "FILE")]
    server_json: Option<PathBuf>,
    /// Its arguments: everything that follows
    #[arg(long, value_name = "ARG", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = ["url", "server_json"])]
    args: Vec<String>,
    /// A variable of its environment; `${NAME}` in the value is our variable of that name
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["url", "server_json"])]
    env: Vec<String>,
    /// The URL to connect to
    #[arg(long)]
    url: Option<String>,
    /// How the URL is spoken to; by its scheme unless given
    #[arg(long, value_enum, requires = "url")]
    transport: Option<UrlTransport>,
    /// A header of every request; `${NAME}` in the value is our variable of that name
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    header: Vec<String>,
    /// What the server is for
    #[arg(long)]
    description: Option<String>,
    /// Show the change and do not make it
    #[arg(long)]
    dry_run: bool,
}

/// The transports that have a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UrlTransport {
    /// Streamable HTTP
    Http,
    /// HTTP with server-sent events
    Sse,
    /// WebSocket
    Websocket,
}

/// A server that is to be added, and where.
struct Asked {
    file: PathBuf,
    server: NewServer,
    manner: Manner,
    /// What it wants to be told before it can be started.
    wants: Vec<String>,
    /// The variables among that that hold secrets.
    secrets: Vec<String>,
}

impl AddWords {
    /// What is asked for. Reads the file of a published server. Fails with a sentence.
    fn asked(self) -> Result<Asked, String> {
        let AddWords {
            file,
            server,
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
            description,
            dry_run,
        } = self;
        let env = pairs("--env", env)?;
        let package = |kind: PackageKind, name: String| {
            let short = short(&name);
            (short, kind.transport(&name, args.clone(), env.clone()))
        };
        let (mut wants, mut secrets) = (Vec::new(), Vec::new());
        let mut described = None;
        let (short, reach) = if let Some(command) = command {
            let name = command.rsplit('/').next().unwrap_or_default().to_owned();
            (name, NewTransport::Stdio { command, args, env })
        } else if let Some(name) = npm {
            package(PackageKind::Npm, name)
        } else if let Some(name) = pypi {
            package(PackageKind::Pypi, name)
        } else if let Some(name) = image {
            package(PackageKind::Oci, name)
        } else if let Some(path) = server_json {
            let read = parse_server_json(&text(&path)?).map_err(|it| format!("{}: {it}", path.display()))?;
            let PublishedServer {
                name,
                description,
                transport: reach,
                required_values: wanted,
                secret_variables: hidden,
            } = read;
            (wants, secrets, described) = (wanted, hidden, description);
            (name, reach)
        } else {
            let url = url.unwrap_or_default();
            let kind = match transport {
                Some(UrlTransport::Http) => UrlTransportKind::Http,
                Some(UrlTransport::Sse) => UrlTransportKind::Sse,
                Some(UrlTransport::Websocket) => UrlTransportKind::WebSocket,
                None => UrlTransportKind::guess(&url),
            };
            (host(&url), NewTransport::Url { kind, url, headers: pairs("--header", header)? })
        };
        let name = server.unwrap_or(short);
        let id =
            ServerId::parse(&name).map_err(|it| format!("{it}; say the server's name after the file"))?;
        let server = NewServer { id, description: description.or(described), transport: reach };
        Ok(Asked { file, server, manner: manner(dry_run), wants, secrets })
    }
}

/// Names and values, `NAME=value`. What is wrong with one is told without it: it may be a secret, and output is kept.
fn pairs(flag: &str, texts: Vec<String>) -> Result<Vec<(String, String)>, String> {
    let pair = |text: String| {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("`{flag}` takes NAME=VALUE, and one has no `=`"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.into_iter().map(pair).collect()
}

/// What people call a package: `@scope/mcp-server-x@1` is `x`.
fn short(package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or_default();
    let bare = last.split(['@', ':', '=', '<', '>', '~', '[']).next().unwrap_or_default();
    let affixed = ["mcp-server-", "server-", "mcp-"].iter().find_map(|it| bare.strip_prefix(it));
    let res = affixed.or_else(|| bare.strip_suffix("-mcp-server")).or_else(|| bare.strip_suffix("-mcp"));
    res.filter(|it| !it.is_empty()).unwrap_or(bare).to_owned()
}

/// What people call the server of a URL: `https://mcp.example.com/x` is `example`.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').filter(|it| !["www", "mcp", "api"].contains(it)).collect();
    labels.first().map_or(host, |it| it).to_owned()
}

fn text(path: &Path) -> Result<String, String> {
    let refused = |it: std::io::Error| format!("could not read {}: {it}", path.display());
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let mut res = String::new();
    fs::File::open(path).map_err(refused)?.take(MOST).read_to_string(&mut res).map_err(refused)?;
    Ok(res)
}

/// Adds a server. Blocks.
pub(crate) fn add(context: &Context, words: AddWords) -> Report {
    let Asked { file, mut server, manner, wants, secrets } = match words.asked() {
        Ok(asked) => asked,
        Err(message) => return context.console.failure(Exit::Usage, &plain::line(&message), None),
    };
    let name = server.id.to_string();
    // VS Code asks for a secret, and keeps it where nobody reads it.
    let asks = prompts_for_inputs(&file.to_string_lossy());
    let asked = if asks { secrets } else { Vec::new() };
    server = server.with_inputs_for(&asked);
    let order = Order { server: &name, done: "added", already: "is there already", manner };
    let mut report = if file.try_exists().is_ok_and(|it| !it) {
        begin(context, &file, server, &order)
    } else {
        let change = |source: &Source| {
            let spec = server.into_spec(source.loaded.profile);
            mcp_config::add_server(&source.document(), &spec)
                .map(|WrittenFile { text, unsupported }| (text, unsupported))
        };
        run(context, &file, &order, change)
    };
    if report.exit == Exit::Done {
        report.err.push_str(&wanted(context, &wants, &asked));
        let try_it =
            format!("`mcp-host doctor {} --server {}` tries it", next::file(&file), next::word(&name));
        report.after = context.console.next(&try_it);
    }
    report
}

/// What is to be done before the server can be used.
fn wanted(context: &Context, wants: &[String], asked: &[String]) -> String {
    let note = paint::paint(context.console.err, paint::NOTE, "note");
    let line = |it: &String| {
        let is_asked = it.split_once(':').is_some_and(|(name, _)| asked.iter().any(|it| it == name));
        let what = if is_asked { "the editor asks for" } else { "it wants the variable" };
        format!("{note}: {what} {}\n", plain::line(it))
    };
    wants.iter().map(line).collect()
}

/// Writes a file that has this server and nothing else.
fn begin(context: &Context, file: &Path, server: NewServer, order: &Order<'_>) -> Report {
    let path = file.display().to_string();
    let failed = |error: String, help: Option<&str>| {
        let (path, server) = (path.clone(), order.server.to_owned());
        super::failed(
            context,
            super::Document { path, server, error: Some(error), ..Default::default() },
            help,
        )
    };
    let reader = context.reader;
    let profile =
        reader.profile.or_else(|| reader.dialect.or_else(|| detect(&path, "")).map(Profile::default_for));
    let Some(profile) = profile else {
        let message =
            format!("{path} is not there, and its name does not say in which dialect it is to be made");
        return failed(message, Some("name it .mcp.json, .minds/mcp.yaml or agent.yaml, or say `--dialect`"));
    };
    if profile.dialect() == Dialect::Acp {
        return failed(mcp_config::EditError::SessionRequest.to_string(), None);
    }
    let (after, losses) = match whole(file, profile, server.into_spec(profile)) {
        Ok(it) => it,
        Err(error) => return failed(error.to_string(), None),
    };
    if order.manner == Manner::Make
        && let Err(error) = create_new(file, &after)
    {
        return failed(chain(&error), None);
    }
    let shown = |colour| render_diff(&path, "", &after, colour);
    let out = match context.format {
        Format::Text => super::text(&shown(context.console.out), &losses, order, context),
        Format::Json => json::document(&super::Document {
            path: path.clone(),
            server: order.server.to_owned(),
            changed: order.manner == Manner::Make,
            diff: shown(mcp_config::Colour::Never),
            losses,
            error: None,
        }),
    };
    Report { out, err: String::new(), exit: Exit::Done, after: String::new() }
}

/// The text of a new file.
fn whole(
    file: &Path,
    profile: Profile,
    server: ServerSpec,
) -> Result<(String, Vec<mcp_config::UnsupportedField>), mcp_config::EditError> {
    let name = file.display().to_string();
    let empty = match profile.dialect() {
        Dialect::McpJson => "{}\n",
        Dialect::HoloDeck | Dialect::Dominds | Dialect::Acp => {
            let WrittenFile { text, unsupported } =
                write_servers(std::slice::from_ref(&server), profile, &|_| None);
            return Ok((text, unsupported));
        }
    };
    let WrittenFile { text, unsupported } =
        mcp_config::add_server(&Document { name: &name, text: empty, profile }, &server)?;
    Ok((text, unsupported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_people_say() {
        let check = |package: &str, want: &str| assert_eq!(short(package), want);
        check("@modelcontextprotocol/server-everything@1.2", "everything");
        check("mcp-server-git==1.0", "git");
        check("firecrawl-mcp", "firecrawl");
        check("docker.io/mcp/time:latest", "time");
        check("server-", "server-");
        let check = |url: &str, want: &str| assert_eq!(host(url), want);
        check("https://mcp.example.com/x", "example");
        check("http://127.0.0.1:8080/mcp", "127");
        check("https://u:p@api.github.com", "github");
    }
}
