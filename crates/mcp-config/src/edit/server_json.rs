//! Reads a published server: a package name, or a `server.json` of the MCP registry.
//!
//! A `server.json` names the values that a user must supply. Secrets and required values without a default become
//! environment variables and are listed.

use serde::Deserialize;
use serde_json::Value;

use crate::edit::new_server::{NewTransport, UrlTransportKind};

/// The maximum size of a `server.json`.
const MAX_BYTES: usize = 1 << 20;

/// A kind of package that a runner can start without installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackageKind {
    /// npm, by `npx`.
    Npm,
    /// PyPI, by `uvx`.
    Pypi,
    /// A container image, by `docker`.
    Oci,
}

impl PackageKind {
    /// The transport that starts the package `name` with these arguments and variables. The name may include a version,
    /// as its kind writes it: `@1.2`, `==1.2` or `@1.2`, `:1.2`.
    pub fn transport(self, name: &str, args: Vec<String>, env: Vec<(String, String)>) -> NewTransport {
        self.stdio_transport(Vec::new(), name, args, env)
    }

    /// Like [`PackageKind::transport`], with arguments for the runner before the package.
    fn stdio_transport(
        self,
        runtime_args: Vec<String>,
        name: &str,
        args: Vec<String>,
        env: Vec<(String, String)>,
    ) -> NewTransport {
        let (command, runner_args): (_, &[&str]) = match self {
            PackageKind::Npm => ("npx", &["-y"]),
            PackageKind::Pypi => ("uvx", &[]),
            PackageKind::Oci => ("docker", &["run", "-i", "--rm"]),
        };
        let mut all: Vec<String> = runner_args.iter().map(|it| (*it).to_owned()).collect();
        if self == PackageKind::Oci {
            // A container inherits no variables; each is passed with `-e`.
            all.extend(env.iter().flat_map(|(name, _)| ["-e".to_owned(), name.clone()]));
        }
        all.extend(runtime_args.into_iter().filter(|it| self != PackageKind::Npm || it != "-y"));
        all.push(name.to_owned());
        all.extend(args);
        NewTransport::Stdio { command: command.to_owned(), args: all, env }
    }

    /// Parses the `registryType` of a package.
    fn parse(kind: &str) -> Option<PackageKind> {
        match kind {
            "npm" => Some(PackageKind::Npm),
            "pypi" => Some(PackageKind::Pypi),
            "oci" | "docker" => Some(PackageKind::Oci),
            _ => None,
        }
    }

    /// The name of the package with its version, in the notation of the kind.
    fn versioned_name(self, identifier: &str, version: Option<&str>) -> String {
        let Some(version) = version.filter(|it| !it.is_empty() && *it != "latest") else {
            return identifier.to_owned();
        };
        let last = identifier.rsplit('/').next().unwrap_or_default();
        match self {
            PackageKind::Npm => format!("{identifier}@{version}"),
            PackageKind::Pypi => format!("{identifier}=={version}"),
            PackageKind::Oci if last.contains([':', '@']) => identifier.to_owned(),
            PackageKind::Oci => format!("{identifier}:{version}"),
        }
    }
}

/// A server of the MCP registry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublishedServer {
    /// The last part of its name, the default name in a configuration.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its transport: the first package that can be started, else the first URL.
    pub transport: NewTransport,
    /// The environment variables and arguments that need a value, with a description.
    pub required_values: Vec<String>,
    /// The variables that are secret according to the publisher.
    pub secret_variables: Vec<String>,
}

/// The required values found so far.
#[derive(Default)]
struct RequiredValues {
    descriptions: Vec<String>,
    secret_variables: Vec<String>,
}

/// The reason why a `server.json` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerJsonError {
    /// The text is too long.
    #[error("it is longer than {} KiB", MAX_BYTES >> 10)]
    TooLarge,
    /// The text is not a valid `server.json`.
    #[error("it is not a valid server.json: {0}")]
    Invalid(String),
    /// The text references an environment variable by name. A published server may request values but must not read
    /// them.
    #[error("it reads an environment variable at `{0}`; a published server must not read variables")]
    ReadsEnvironment(String),
    /// The server has neither a supported package nor a URL.
    #[error("it has neither an npm, PyPI or OCI package with stdio transport nor a URL")]
    NoTransport,
}

/// Reads a `server.json` of the MCP registry, or the registry API's response for a server.
pub fn parse_server_json(text: &str) -> Result<PublishedServer, ServerJsonError> {
    if text.len() > MAX_BYTES {
        return Err(ServerJsonError::TooLarge);
    }
    // serde's message may quote a value, so only the position is reported.
    let invalid_json = |it: serde_json::Error| {
        ServerJsonError::Invalid(format!("line {}, column {} is invalid", it.line(), it.column()))
    };
    let all: Value = serde_json::from_str(text).map_err(invalid_json)?;
    if let Some(pointer) = find_reference(&all, String::new()) {
        return Err(ServerJsonError::ReadsEnvironment(pointer));
    }
    let envelope: Envelope = serde_json::from_str(text).map_err(invalid_json)?;
    let server: ServerJson = match envelope.server {
        Some(_) => serde_json::from_str::<RegistryResponse>(text).map_err(invalid_json)?.server,
        None => serde_json::from_str(text).map_err(invalid_json)?,
    };
    let ServerJson { name, description, packages, remotes } = server;
    let mut required_values = RequiredValues::default();
    let transport = packages.iter().find_map(|it| it.transport(&mut required_values));
    let transport = transport.or_else(|| remotes.iter().find_map(|it| it.transport(&mut required_values)));
    let last = name.rsplit('/').next().unwrap_or_default().to_owned();
    let transport = transport.ok_or(ServerJsonError::NoTransport)?;
    Ok(PublishedServer {
        name: last,
        description,
        transport,
        required_values: required_values.descriptions,
        secret_variables: required_values.secret_variables,
    })
}

/// The pointer to the first text with a variable reference. Descriptions are ignored because they are not
/// configuration.
fn find_reference(value: &Value, pointer: String) -> Option<String> {
    match value {
        Value::String(text) => text.contains("${").then_some(pointer),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, it)| find_reference(it, format!("{pointer}/{at}")))
        }
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| !["description", "_meta", "title"].contains(&key.as_str()))
            .find_map(|(key, it)| find_reference(it, format!("{pointer}/{key}"))),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Detects a response of the registry API, which has the member `server`.
#[derive(Deserialize)]
struct Envelope {
    server: Option<serde::de::IgnoredAny>,
}

/// A response of the registry API.
#[derive(Deserialize)]
struct RegistryResponse {
    server: ServerJson,
}

#[derive(Deserialize)]
struct ServerJson {
    name: String,
    description: Option<String>,
    #[serde(default)]
    packages: Vec<PackageJson>,
    #[serde(default)]
    remotes: Vec<RemoteJson>,
}

/// A package of a `server.json`. Older spellings of its members are aliases.
#[derive(Deserialize)]
struct PackageJson {
    #[serde(alias = "registryType", alias = "registry_type", alias = "registry_name")]
    kind: String,
    #[serde(alias = "name")]
    identifier: String,
    version: Option<String>,
    transport: Option<TransportJson>,
    #[serde(default, alias = "runtimeArguments")]
    runtime_arguments: Vec<InputJson>,
    #[serde(default, alias = "packageArguments")]
    package_arguments: Vec<InputJson>,
    #[serde(default, alias = "environmentVariables", alias = "environment_variables")]
    variables: Vec<InputJson>,
}

#[derive(Deserialize)]
struct TransportJson {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct RemoteJson {
    #[serde(rename = "type", alias = "transport_type")]
    kind: String,
    url: String,
    #[serde(default)]
    headers: Vec<InputJson>,
}

/// An argument, a variable or a header.
#[derive(Default, Deserialize)]
struct InputJson {
    name: Option<String>,
    value: Option<String>,
    default: Option<String>,
    #[serde(alias = "valueHint", alias = "value_hint")]
    hint: Option<String>,
    description: Option<String>,
    #[serde(default, alias = "isRequired", alias = "is_required")]
    required: bool,
    #[serde(default, alias = "isSecret", alias = "is_secret")]
    secret: bool,
}

impl PackageJson {
    /// The transport that starts the package. `None` if its kind or its transport is not supported.
    fn transport(&self, required_values: &mut RequiredValues) -> Option<NewTransport> {
        let package = PackageKind::parse(&self.kind)?;
        if self.transport.as_ref().is_some_and(|it| it.kind != "stdio") {
            return None;
        }
        let name = package.versioned_name(&self.identifier, self.version.as_deref());
        let env = named_values(&self.variables, required_values);
        let runtime_args = argument_texts(&self.runtime_arguments, required_values);
        let package_args = argument_texts(&self.package_arguments, required_values);
        Some(package.stdio_transport(runtime_args, &name, package_args, env))
    }
}

impl RemoteJson {
    /// The transport of the URL. `None` if its kind is not supported.
    fn transport(&self, required_values: &mut RequiredValues) -> Option<NewTransport> {
        let RemoteJson { kind, url, headers } = self;
        let kind = match kind.as_str() {
            "streamable-http" | "streamable_http" | "http" => UrlTransportKind::Http,
            "sse" => UrlTransportKind::Sse,
            "websocket" | "ws" => UrlTransportKind::WebSocket,
            _ => return None,
        };
        let headers = named_values(headers, required_values);
        let url_input = InputJson { required: true, ..InputJson::default() };
        Some(NewTransport::Url { kind, url: replace_placeholders(url, required_values, &url_input), headers })
    }
}

/// The variables or headers that have a value or require one.
fn named_values(inputs: &[InputJson], required_values: &mut RequiredValues) -> Vec<(String, String)> {
    let mut res = Vec::new();
    for input in inputs {
        let Some(name) = input.name.clone() else { continue };
        let written = match (&input.value, &input.default) {
            (Some(value), _) => replace_placeholders(value, required_values, input),
            (None, Some(value)) if !input.secret => value.clone(),
            (None, _) if input.required || input.secret => require_value(&name, required_values, input),
            (None, _) => continue,
        };
        res.push((name, written));
    }
    res
}

/// The arguments that have a value or require one.
fn argument_texts(inputs: &[InputJson], required_values: &mut RequiredValues) -> Vec<String> {
    let mut res = Vec::new();
    for input in inputs {
        let value = match (&input.value, &input.default) {
            (Some(value), _) => Some(replace_placeholders(value, required_values, input)),
            (None, Some(value)) => Some(value.clone()),
            (None, None) if input.required => {
                let name = input.hint.as_deref().or(input.name.as_deref()).unwrap_or("argument");
                Some(require_value(name, required_values, input))
            }
            (None, None) => None,
        };
        match (&input.name, value) {
            (Some(name), value) if name.starts_with('-') => {
                // A flag without value is written if it is required.
                if value.is_some() || input.required {
                    res.push(name.clone());
                    res.extend(value);
                }
            }
            (_, value) => res.extend(value),
        }
    }
    res
}

/// Adds a value that the user must supply. Returns the reference to its environment variable.
fn require_value(name: &str, required_values: &mut RequiredValues, input: &InputJson) -> String {
    let variable = variable_name(name);
    let what = input.description.as_deref().or(input.hint.as_deref()).unwrap_or("a value");
    let text = format!("{variable}: {what}");
    if !required_values.descriptions.contains(&text) {
        required_values.descriptions.push(text);
    }
    if input.secret && !required_values.secret_variables.contains(&variable) {
        required_values.secret_variables.push(variable.clone());
    }
    format!("${{{variable}}}")
}

/// Rewrites `Bearer {api_key}` to `Bearer ${API_KEY}`.
fn replace_placeholders(text: &str, required_values: &mut RequiredValues, input: &InputJson) -> String {
    let mut res = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        res.push_str(before);
        match after.split_once('}') {
            Some((name, behind)) if is_placeholder_name(name) => {
                res.push_str(&require_value(name, required_values, input));
                rest = behind;
            }
            Some(_) | None => {
                res.push('{');
                rest = after;
            }
        }
    }
    res + rest
}

/// Whether the text between braces is the name of a placeholder.
fn is_placeholder_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it))
}

/// The name of the environment variable for a name: `X-Api-Key` becomes `X_API_KEY`.
fn variable_name(name: &str) -> String {
    let kept = name.trim_start_matches('-').chars();
    let upper = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' };
    let mut res: String = kept.map(upper).collect();
    if res.is_empty() || res.starts_with(|it: char| it.is_ascii_digit()) {
        res.insert(0, '_');
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with `command args… | NAME=value… | required values…`, `URL | headers | required values`, or the error.
    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match parse_server_json(text) {
            Err(error) => error.to_string(),
            Ok(PublishedServer { name, description: _, transport, required_values, secret_variables: _ }) => {
                let pairs =
                    |it: Vec<(String, String)>| it.into_iter().map(|(name, value)| format!("{name}={value}"));
                let (first, second): (String, Vec<String>) = match transport {
                    NewTransport::Stdio { command, args, env } => {
                        (format!("{command} {}", args.join(" ")), pairs(env).collect())
                    }
                    NewTransport::Url { kind, url, headers } => {
                        (format!("{kind:?} {url}"), pairs(headers).collect())
                    }
                };
                format!("{name}: {first} | {} | {}", second.join(" "), required_values.join("; "))
            }
        };
        assert_eq!(got, want);
    }

    #[test]
    fn package_is_started_by_its_runner() {
        check(
            r#"{"name":"io.github.me/weather","description":"d","version":"1","packages":[
                {"registryType":"mcpb","identifier":"x"},
                {"registryType":"npm","identifier":"@me/weather","version":"1.2.0","transport":{"type":"stdio"},
                 "runtimeArguments":[{"type":"positional","value":"-y"}],
                 "packageArguments":[{"type":"named","name":"--units","value":"metric"},{"type":"positional","valueHint":"city","isRequired":true,"description":"Where"}],
                 "environmentVariables":[{"name":"API_KEY","isRequired":true,"isSecret":true,"description":"Your key"},{"name":"LEVEL","default":"info"},{"name":"EXTRA"}]}]}"#,
            "weather: npx -y @me/weather@1.2.0 --units metric ${CITY} | API_KEY=${API_KEY} LEVEL=info | \
             API_KEY: Your key; CITY: Where",
        );
        check(
            r#"{"server":{"name":"a/b","packages":[{"registry_type":"pypi","identifier":"b","version":"2"}]},"_meta":{}}"#,
            "b: uvx b==2 |  | ",
        );
        check(
            r#"{"name":"a/c","packages":[{"registryType":"oci","identifier":"docker.io/a/c:1","version":"1",
                "environmentVariables":[{"name":"K","isSecret":true}]}]}"#,
            "c: docker run -i --rm -e K docker.io/a/c:1 | K=${K} | K: a value",
        );
    }

    #[test]
    fn url_is_used_without_a_startable_package() {
        check(
            r#"{"name":"a/d","packages":[{"registryType":"npm","identifier":"d","transport":{"type":"streamable-http"}}],
                "remotes":[{"type":"streamable-http","url":"https://{tenant}.example.com/mcp",
                "headers":[{"name":"Authorization","value":"Bearer {api_key}","isSecret":true,"description":"Key"},
                           {"name":"X-Region","isRequired":true}]}]}"#,
            "d: Http https://${TENANT}.example.com/mcp | Authorization=Bearer ${API_KEY} X-Region=${X_REGION} | \
             API_KEY: Key; X_REGION: a value; TENANT: a value",
        );
        check(
            r#"{"name":"a/e","remotes":[{"type":"sse","url":"https://e/sse"}]}"#,
            "e: Sse https://e/sse |  | ",
        );
    }

    #[test]
    fn invalid_server_json_is_explained() {
        check("{}", "it is not a valid server.json: line 1, column 2 is invalid");
        check(
            r#"{"name":"a/f"}"#,
            "it has neither an npm, PyPI or OCI package with stdio transport nor a URL",
        );
        check(r#"{"name":"#, "it is not a valid server.json: line 1, column 8 is invalid");
        let reads = |at: &str| {
            format!("it reads an environment variable at `{at}`; a published server must not read variables")
        };
        check(
            r#"{"name":"a/g","description":"${HOME}","remotes":[{"type":"sse","url":"https://e/?k=${AWS_KEY}"}]}"#,
            &reads("/remotes/0/url"),
        );
        check(
            r#"{"name":"a/h","packages":[{"registryType":"npm","identifier":"h","environmentVariables":[{"name":"A","default":"${B}"}]}]}"#,
            &reads("/packages/0/environmentVariables/0/default"),
        );
        check(&" ".repeat(MAX_BYTES + 1), "it is longer than 1024 KiB");
    }
}
