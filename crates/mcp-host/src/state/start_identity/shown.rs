//! Texts of an identity as a lock file shows them: without secrets, and relative to the project.

use std::path::{Path, PathBuf};

use mcp_host_model::internal::names_secret;
use mcp_host_model::{ConfigValue, Secret, TemplatePart, UrlEndpoint};

use super::files::{FileAccess, normalized};

/// The text in place of a secret.
const HIDDEN: &str = "…";

/// A word from this length on that has letters and digits may be a token.
const MIN_TOKEN_CHARS: usize = 20;

/// Shows paths relative to the project, so that a lock file fits every copy of it.
pub(super) struct ShownPaths<'a> {
    pub(super) project: PathBuf,
    resolved: PathBuf,
    pub(super) files: &'a FileAccess<'a>,
}

impl<'a> ShownPaths<'a> {
    pub(super) fn new(project: PathBuf, files: &'a FileAccess<'a>) -> ShownPaths<'a> {
        let project = normalized(&project);
        ShownPaths { resolved: (files.resolve)(&project), project, files }
    }

    /// Replaces the folder of the project in a text.
    pub(super) fn text(&self, text: &str) -> String {
        let project = self.project.to_string_lossy();
        if project.len() > 1 { text.replace(&*project, ".") } else { text.to_owned() }
    }

    /// Shows a path without links, so that a changed link is a change.
    pub(super) fn path(&self, path: &Path) -> String {
        let resolved = (self.files.resolve)(path);
        let shown = resolved.strip_prefix(&self.resolved).unwrap_or(&resolved);
        if shown.as_os_str().is_empty() { ".".to_owned() } else { shown.display().to_string() }
    }

    /// Shows a file with its hash, and where a link leads to.
    pub(super) fn file(&self, path: &Path, hash: &blake3::Hash) -> String {
        let name = path.strip_prefix(&self.project).unwrap_or(path).display().to_string();
        let target = self.path(path);
        let link = if target == name { String::new() } else { format!(" -> {target}") };
        format!("{name}{link} blake3:{}", hash.to_hex())
    }
}

/// The arguments as the entry has them: references stay references, and secrets are left out.
pub(super) fn shown_arguments(args: &[Secret], written: &[ConfigValue]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut is_value_of_secret = false;
    for (index, argument) in args.iter().enumerate() {
        let text = argument.expose();
        let template = written.get(index).filter(|_| written.len() == args.len()).and_then(template_text);
        shown.push(match template {
            Some(template) => template,
            None if is_value_of_secret => HIDDEN.to_owned(),
            // A literal `$` is not taken for a reference.
            None => shown_word(text).replace('$', "$$"),
        });
        is_value_of_secret = text.starts_with('-') && !text.contains('=') && names_secret(text);
    }
    shown
}

/// The text of a value with references; `None` for a literal.
fn template_text(value: &ConfigValue) -> Option<String> {
    let part_text = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => shown_word(text.expose()).replace('$', "$$"),
        TemplatePart::Variable(name) => format!("${{{name}}}"),
        TemplatePart::OptionalVariable(name) => format!("${{{name}?}}"),
        TemplatePart::VariableOr { name, default: _ } => format!("${{{name}-}}"),
        TemplatePart::Input(id) => format!("${{input:{id}}}"),
        TemplatePart::File(path) => format!("${{file:{path}}}"),
        TemplatePart::Secret(name) => format!("${{secret:{name}}}"),
    };
    match value {
        ConfigValue::Literal(_) => None,
        ConfigValue::HostEnv { name, prefix } => Some(format!("{}${{{name}}}", shown_word(prefix.expose()))),
        ConfigValue::Template(parts) => Some(parts.iter().map(part_text).collect()),
    }
}

/// A word of a command line without secrets.
fn shown_word(word: &str) -> String {
    if let Some((address, rest)) = word.split_once("://") {
        let rest = rest.split_once('?').map_or(rest.to_owned(), |it| format!("{}?{HIDDEN}", it.0));
        let host = rest.rsplit_once('@').map_or(rest.clone(), |it| format!("{HIDDEN}@{}", it.1));
        return format!("{address}://{host}");
    }
    if let Some((name, value)) = word.split_once('=') {
        let value = if names_secret(name) { HIDDEN.to_owned() } else { shown_word(value) };
        return format!("{name}={value}");
    }
    let is_token_letter = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '+');
    let is_token = word.len() >= MIN_TOKEN_CHARS
        && word.chars().all(is_token_letter)
        && word.contains(|it: char| it.is_ascii_digit())
        && word.contains(|it: char| it.is_ascii_alphabetic());
    if is_token { HIDDEN.to_owned() } else { word.to_owned() }
}

/// A URL without secrets, with the names of its parameters.
pub(super) fn shown_url(endpoint: &UrlEndpoint) -> String {
    let names: Vec<String> = endpoint.url.query_pairs().map(|(name, _)| name.into_owned()).collect();
    let label = endpoint.label();
    if names.is_empty() { label } else { format!("{label}?{}", names.join("&")) }
}
