//! Resolves single values: literals, host variables, texts with `${VAR}`, and JSON with such texts.

use std::path::Path;

use mcp_host_model::{
    ConfigValue, RawJson, Secret, ServerSpec, SpecOrigin, TemplatePart, UnsetVariablePolicy,
};
use serde_json::value::RawValue;

use crate::de::closest_variable;
use crate::diagnostic::{CheckError, Code, quoted};
use crate::profile::rules::{ProfileRules, UrlPolicy};
use crate::resolve::context::{ResolveContext, ResolveError};
use crate::resolve::server_secrets::ReadSecrets;
use crate::syntax::template::ReferenceRule;
use crate::syntax::{child_pointer, template};

/// Resolves the values of one server, and collects the errors.
pub(super) struct Resolver<'a> {
    pub(super) origin: &'a SpecOrigin,
    pub(super) reference_rule: ReferenceRule,
    pub(super) env_file_key: &'static str,
    pub(super) url_policy: UrlPolicy,
    pub(super) errors: Vec<ResolveError>,
    pub(super) config_folders: &'static [&'static str],
    server: &'a str,
    pub(super) secrets: ReadSecrets,
    pub(super) context: &'a ResolveContext<'a>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(spec: &'a ServerSpec, context: &'a ResolveContext<'a>) -> Resolver<'a> {
        let rules = ProfileRules::for_profile(spec.origin.profile);
        Resolver {
            origin: &spec.origin,
            reference_rule: rules.reference_rule,
            env_file_key: if rules.unsupported_keys.contains(&"envFile") { "env_file" } else { "envFile" },
            url_policy: rules.url_policy,
            errors: Vec::new(),
            config_folders: rules.config_folders,
            server: spec.id.as_str(),
            secrets: ReadSecrets::default(),
            context,
        }
    }

    /// Resolves a value; `what` names it in messages. `None` if a variable is missing.
    pub(super) fn resolve_value(&mut self, value: &ConfigValue, pointer: &str, what: &str) -> Option<Secret> {
        match value {
            ConfigValue::Literal(text) => Some(text.clone()),
            ConfigValue::HostEnv { name, prefix } => match (self.context.variable)(name) {
                Some(value) => Some(Secret::new(format!("{}{value}", prefix.expose()))),
                None => {
                    self.report_missing_host_variable(name, pointer, what);
                    None
                }
            },
            ConfigValue::Template(parts) => self.resolve_parts(parts, pointer).map(Secret::new),
        }
    }

    /// Resolves a value and checks the result. `None` if a variable is missing or the check fails, which is reported.
    pub(super) fn resolve_checked(
        &mut self,
        value: &ConfigValue,
        pointer: &str,
        what: &str,
        check: fn(&str) -> Result<(), CheckError>,
    ) -> Option<Secret> {
        let res = self.resolve_value(value, pointer, what)?;
        match check(res.expose()) {
            Ok(()) => Some(res),
            Err(error) => {
                self.report_check_error(error, pointer);
                None
            }
        }
    }

    /// Resolves a text of the spec. Unchanged if the dialect has no variables or one is missing.
    pub(super) fn resolve_text(&mut self, text: &str, pointer: &str) -> String {
        if !template::has_reference(text, self.reference_rule) {
            return text.to_owned();
        }
        self.resolve_parts(&template::split_references(text, self.reference_rule), pointer)
            .unwrap_or_else(|| text.to_owned())
    }

    /// Resolves texts that are not values: the description and `server` (HD-054).
    pub(super) fn resolve_texts(&mut self, spec: &mut ServerSpec) {
        match self.reference_rule {
            ReferenceRule::Expand | ReferenceRule::ExpandWithFolder => {}
            ReferenceRule::Literal
            | ReferenceRule::Secrets
            | ReferenceRule::Editor
            | ReferenceRule::EditorAndShell
            | ReferenceRule::EditorAndOptionalShell
            | ReferenceRule::Braces => return,
        }
        if let Some(description) = &mut spec.description {
            *description =
                self.resolve_text(description, &child_pointer(&self.origin.pointer, "description"));
        }
        for key in ["server", "registry_name"] {
            let Some(text) = spec.metadata.get(key).and_then(|it| it.to_text().map(String::from)) else {
                continue;
            };
            let resolved = self.resolve_text(&text, &child_pointer(&self.origin.pointer, key));
            if let Ok(json) = RawJson::from_value(&resolved) {
                spec.metadata.insert(key.to_owned(), json);
            }
        }
    }

    /// Joins the parts of a text with the values of their variables. Reports each missing variable once.
    fn resolve_parts(&mut self, parts: &[TemplatePart], pointer: &str) -> Option<String> {
        let mut res = Some(String::new());
        let mut missing = Vec::new();
        for part in parts {
            let text = match part {
                TemplatePart::Text(text) => Some(text.expose().to_owned()),
                // As in a shell, empty counts as unset.
                TemplatePart::VariableOr { name, default } => {
                    let found = self.look_up_variable(name).filter(|it| !it.is_empty());
                    Some(found.unwrap_or_else(|| default.expose().to_owned()))
                }
                TemplatePart::OptionalVariable(name) => {
                    Some(self.look_up_variable(name).unwrap_or_else(|| format!("${name}")))
                }
                TemplatePart::Input(id) => {
                    let literal = self.text_for_unset(|| format!("${{input:{id}}}"));
                    let found = self.look_up_input(id, pointer).or(literal);
                    if found.is_none() && !missing.contains(&id) {
                        missing.push(id);
                        self.report_missing_input(id, pointer);
                    }
                    found
                }
                TemplatePart::File(path) => self.read_file(path, pointer),
                TemplatePart::Secret(name) => self.resolve_secret(name, pointer),
                TemplatePart::Variable(name) => {
                    let literal = self.text_for_unset(|| format!("${{{name}}}"));
                    let found = self.look_up_variable(name).or(literal);
                    if found.is_none() && !missing.contains(&name) {
                        missing.push(name);
                        self.report_missing_variable(name, pointer);
                    }
                    found
                }
            };
            res = res.zip(text).map(|(res, text)| res + &text);
        }
        res
    }

    /// The text for a reference to an unset variable; `None` if it is an error.
    fn text_for_unset(&self, text: impl FnOnce() -> String) -> Option<String> {
        match self.origin.unset_variables {
            UnsetVariablePolicy::Reject => None,
            UnsetVariablePolicy::Keep => Some(text()),
            UnsetVariablePolicy::Empty => Some(String::new()),
        }
    }

    /// The value of a variable: of the environment, or one that the rule defines, such as a folder.
    fn look_up_variable(&self, name: &str) -> Option<String> {
        let is_editor = match self.reference_rule {
            ReferenceRule::Literal | ReferenceRule::Secrets | ReferenceRule::Expand => {
                return (self.context.variable)(name);
            }
            ReferenceRule::ExpandWithFolder => false,
            ReferenceRule::Editor
            | ReferenceRule::EditorAndShell
            | ReferenceRule::EditorAndOptionalShell
            | ReferenceRule::Braces => true,
        };
        let directory = || self.context.directory.to_string_lossy().into_owned();
        match name {
            template::EXTENSION_PATH if is_editor => Some(directory()),
            template::PLUGIN_ROOT if is_editor => (self.context.variable)(name).or_else(|| Some(directory())),
            template::WORKSPACE_FOLDER | template::WORKSPACE_PATH
                if is_editor || name == template::WORKSPACE_FOLDER =>
            {
                let folder = self.workspace();
                let folder = folder.to_string_lossy();
                Some(if folder.is_empty() { ".".to_owned() } else { folder.into_owned() })
            }
            template::WORKSPACE_FOLDER_NAME if is_editor => {
                self.workspace().file_name().map(|it| it.to_string_lossy().into_owned())
            }
            template::USER_HOME if is_editor => self.home(),
            _ => (self.context.variable)(name),
        }
    }

    /// The value of an input: its environment variable, the default in the file, or the secret with the name of that
    /// variable.
    fn look_up_input(&mut self, id: &str, pointer: &str) -> Option<String> {
        let variable = template::input_variable(id);
        let stated = (self.context.variable)(&variable).or_else(|| self.origin.inputs.get(id).cloned());
        stated.or_else(|| self.look_up_secret(&variable, &format!("${{input:{id}}}"), pointer))
    }

    /// The content of a file, trimmed. A relative path starts at the folder of the configuration file.
    fn read_file(&mut self, path: &str, pointer: &str) -> Option<String> {
        let in_home = path.strip_prefix("~/").zip(self.look_up_variable(template::USER_HOME));
        let path = match in_home {
            Some((rest, home)) => Path::new(&home).join(rest),
            None => self.context.directory.join(path),
        };
        match (self.context.read_file)(&path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(why) => {
                let message = format!("cannot read the file of a reference: {why}");
                let help = "a relative path starts at the folder of the configuration file";
                self.errors.push(ResolveError::new(Code::UnreadableEnvFile, message, pointer, help));
                None
            }
        }
    }

    fn report_missing_input(&mut self, id: &str, pointer: &str) {
        let message = format!("the input '{}' has no value", quoted(id));
        let variable = template::input_variable(id);
        let mut help = format!("set it before the start: `export {variable}=…`");
        if !self.secrets.is_public {
            help.push_str(&format!(", or keep it: `mcp-host secret set {variable}`"));
        }
        self.errors.push(ResolveError::new(Code::MissingInput, message, pointer, &help));
    }

    /// Reports a missing variable of a text (HD-052, HD-063).
    fn report_missing_variable(&mut self, name: &str, pointer: &str) {
        let message = format!("Environment variable '{name}' not found");
        let help = self.missing_variable_help(name);
        self.errors.push(ResolveError::new(Code::MissingVariable, message, pointer, &help));
    }

    fn missing_variable_help(&self, name: &str) -> String {
        let names = (self.context.names)();
        let folders: &[&str] = match self.reference_rule {
            ReferenceRule::Editor
            | ReferenceRule::EditorAndShell
            | ReferenceRule::EditorAndOptionalShell
            | ReferenceRule::Braces => &template::EDITOR_FOLDER_VARIABLES,
            ReferenceRule::ExpandWithFolder => &[template::WORKSPACE_FOLDER],
            ReferenceRule::Literal | ReferenceRule::Secrets | ReferenceRule::Expand => &[],
        };
        let near = closest_variable(name, names.iter().map(String::as_str).chain(folders.iter().copied()));
        let question =
            near.map(|it| format!("did you mean `{}`? Otherwise ", quoted(it))).unwrap_or_default();
        format!("{question}set it before the start: `export {name}=…`")
    }

    /// Reports a missing host variable with Dominds' message (DM-071).
    fn report_missing_host_variable(&mut self, name: &str, pointer: &str, what: &str) {
        let server = self.server;
        let message = format!("MCP server '{server}' missing required host env var '{name}' (for {what})");
        let help = self.missing_variable_help(name);
        self.errors.push(ResolveError::new(Code::MissingVariable, message, pointer, &help));
    }
}

/// Replaces variables in the strings of a JSON value. Keys and all other values stay.
pub(super) fn resolve_json(json: &RawJson, pointer: &str, resolver: &mut Resolver<'_>) -> String {
    if let Some(text) = json.to_text() {
        return serde_json::Value::String(resolver.resolve_text(&text, pointer)).to_string();
    }
    if let Some(members) = json.members() {
        let members = members.into_iter().map(|(key, value)| {
            let value = resolve_json(&value, &child_pointer(pointer, &key), resolver);
            format!("{}:{value}", serde_json::Value::String(key.into()))
        });
        return format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    }
    let Ok(items) = json.read::<Vec<&RawValue>>() else { return json.as_str().to_owned() };
    let items = items.into_iter().enumerate().map(|(index, it)| {
        resolve_json(&RawJson::copy_of(it), &child_pointer(pointer, &index.to_string()), resolver)
    });
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}
