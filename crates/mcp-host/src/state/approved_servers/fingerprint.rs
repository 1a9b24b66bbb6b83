//! The fingerprint of a server: a hash of what its entry starts or connects to.
//!
//! It covers the program, the arguments, the URL, the working directory, the sandbox, the names of variables and
//! headers, what the files of the project state as their values, and the content of scripts that lie in the project. It
//! does not cover the values of the user's own variables, so that a renewed token needs no new approval.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{
    ClientCredentials, ConfigValue, Endpoint, Passthrough, Secret, StdioEndpoint, TemplatePart,
    TransportSpec, UrlEndpoint, UrlSpec,
};

/// The longest word of a command line that may be the path of a script.
const MAX_PATH_BYTES: usize = 4096;

/// The variable through which a server receives its configuration.
const CONFIG_VARIABLE: &str = "MCP_CONFIG";

/// Computes the fingerprint. `current` is the folder of the host, and `hash_file` returns the hash of a regular file.
pub(super) fn fingerprint(
    server: &ResolvedServer,
    current: &Path,
    hash_file: &dyn Fn(&Path) -> Option<blake3::Hash>,
) -> String {
    let mut fields = Fields::default();
    fields.add("config", server.spec.config.as_ref().map_or("", passthrough_text));
    match (&server.endpoint, &server.spec.transport) {
        (Endpoint::Stdio(endpoint), transport) => {
            let written = match transport {
                TransportSpec::Stdio(spec) => &spec.env[..],
                TransportSpec::Sse(_) | TransportSpec::WebSocket(_) | TransportSpec::Http(_) => &[],
            };
            add_process(&mut fields, endpoint, written);
            let folder = endpoint.cwd.clone().unwrap_or_else(|| current.to_owned());
            let folder = normalized(&current.join(folder));
            let project = normalized(&current.join(project_folder(server)));
            for path in script_paths(endpoint, &folder) {
                if !path.starts_with(&project) && !path.starts_with(&folder) {
                    continue;
                }
                if let Some(hash) = hash_file(&path) {
                    fields.add("script", &path.to_string_lossy());
                    fields.add("content", hash.to_hex().as_str());
                }
            }
        }
        (
            Endpoint::Sse(endpoint) | Endpoint::WebSocket(endpoint) | Endpoint::Http(endpoint),
            TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec),
        ) => add_url(&mut fields, server.endpoint.kind().as_str(), endpoint, Some(spec)),
        (
            Endpoint::Sse(endpoint) | Endpoint::WebSocket(endpoint) | Endpoint::Http(endpoint),
            TransportSpec::Stdio(_),
        ) => add_url(&mut fields, server.endpoint.kind().as_str(), endpoint, None),
    }
    fields.0.finalize().to_hex().to_string()
}

fn add_process(fields: &mut Fields, endpoint: &StdioEndpoint, written: &[(String, ConfigValue)]) {
    fields.add("command", &endpoint.command);
    for argument in &endpoint.args {
        fields.add("argument", argument.expose());
    }
    fields.add("folder", &endpoint.cwd.as_deref().unwrap_or(Path::new("")).to_string_lossy());
    fields.add("inherited", &format!("{:?}", endpoint.inherit));
    // Not without a sandbox, so that earlier approvals of servers without one stay valid.
    if let Some(sandbox) = &endpoint.sandbox {
        fields.add("sandbox", &format!("{sandbox:?}"));
    }
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
    }
}

fn add_url(fields: &mut Fields, kind: &str, endpoint: &UrlEndpoint, spec: Option<&UrlSpec>) {
    fields.add("transport", kind);
    fields.add("url", endpoint.url.as_str());
    let mut headers: Vec<(&str, String)> = match spec {
        Some(spec) => spec.headers.iter().map(|(name, value)| (name.as_str(), written_text(value))).collect(),
        None => {
            endpoint.headers.iter().map(|(name, value)| (name.as_str(), value.expose().to_owned())).collect()
        }
    };
    headers.sort();
    for (name, value) in headers {
        fields.add("header", name);
        fields.add("value", &value);
    }
    if let Some(ClientCredentials { grant, client_id, scopes, issuer, .. }) = &endpoint.client_credentials {
        fields.add("grant", &format!("{grant:?}"));
        fields.add("client", client_id);
        fields.add("scopes", &scopes.join(" "));
        fields.add("issuer", issuer);
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

/// A path without `.` and `..`. Links are not resolved, so that one in the project counts as a file of the project.
fn normalized(path: &Path) -> PathBuf {
    let mut res = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                res.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => res.push(component),
        }
    }
    res
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

/// A hash of named fields. Each name and value has its length before it, so that no two lists of fields are alike.
#[derive(Default)]
struct Fields(blake3::Hasher);

impl Fields {
    fn add(&mut self, name: &str, value: &str) {
        for text in [name, value] {
            self.0.update(&(text.len() as u64).to_le_bytes());
            self.0.update(text.as_bytes());
        }
    }
}
