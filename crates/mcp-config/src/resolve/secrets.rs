//! The user's secrets in the values of a server.
//!
//! A secret is replaced only where other users of the machine cannot see it and no message repeats it: not in
//! arguments, which the list of processes shows, nor in the address of a URL.

use mcp_host_model::{ConfigValue, Secret, TemplatePart};

use crate::diagnostic::Code;
use crate::resolve::context::{ResolveError, SecretAccess};
use crate::resolve::values::Resolver;

/// What is wrong with a secret in a text that others can see.
const VISIBLE: &str = "a secret is not replaced here, because it would be visible";

impl Resolver<'_> {
    /// Calls `resolve` for a text that others can see, such as an argument. A secret in it is reported, not replaced.
    pub(super) fn resolve_without_secrets<T>(&mut self, resolve: impl FnOnce(&mut Self) -> T) -> T {
        self.secrets.is_public = true;
        let res = resolve(self);
        self.secrets.is_public = false;
        res
    }

    /// The value of `${secret:NAME}`; reports a missing one.
    pub(super) fn resolve_secret(&mut self, name: &str, pointer: &str) -> Option<String> {
        if self.secrets.is_public {
            self.report_secret(VISIBLE, pointer, "write it into `env`, `headers` or the query of the URL");
            return None;
        }
        let errors_before = self.errors.len();
        let found = self.look_up_secret(name, &format!("${{secret:{name}}}"), pointer);
        if found.is_none() && self.errors.len() == errors_before {
            let help = format!("store it: `mcp-host secret set {name}`");
            self.report_secret(&format!("the secret '{name}' is not stored"), pointer, &help);
        }
        found
    }

    /// The value of a secret, if the source has it. Returns `reference` if secrets are withheld. Reports a source that
    /// cannot be used.
    pub(super) fn look_up_secret(&mut self, name: &str, reference: &str, pointer: &str) -> Option<String> {
        if self.secrets.is_public {
            return None;
        }
        if let (Some(known), SecretAccess::Granted(_)) = (self.secrets.values.get(name), self.context.secrets)
        {
            return known.as_ref().map(|it| it.expose().to_owned());
        }
        let value = match self.context.secrets {
            SecretAccess::Withheld => {
                self.secrets.values.insert(name.to_owned(), None);
                self.secrets.are_withheld = true;
                return Some(reference.to_owned());
            }
            SecretAccess::Granted(source) => source.secret(name),
        };
        match value {
            Ok(found) => {
                let text = found.as_ref().map(|it| it.expose().to_owned());
                self.secrets.values.insert(name.to_owned(), found);
                text
            }
            Err(why) => {
                let help = "`mcp-host secret list` shows where secrets are stored";
                self.report_secret(&format!("cannot read the secret '{name}': {why}"), pointer, help);
                None
            }
        }
    }

    /// Resolves a URL, which may have secrets in its query only: messages and logs contain the rest.
    pub(super) fn resolve_url_value(
        &mut self,
        url: &ConfigValue,
        pointer: &str,
        key: &str,
    ) -> Option<Secret> {
        if may_have_secret_before_query(url) {
            return self.resolve_without_secrets(|resolver| resolver.resolve_value(url, pointer, key));
        }
        self.resolve_value(url, pointer, key)
    }

    fn report_secret(&mut self, message: &str, pointer: &str, help: &str) {
        self.errors.push(ResolveError::new(Code::Secret, message, pointer, help));
    }
}

fn may_have_secret_before_query(url: &ConfigValue) -> bool {
    let ConfigValue::Template(parts) = url else { return false };
    let is_before_query = |part: &&TemplatePart| match part {
        TemplatePart::Text(text) => !text.expose().contains('?'),
        TemplatePart::Variable(_)
        | TemplatePart::OptionalVariable(_)
        | TemplatePart::VariableOr { .. }
        | TemplatePart::Input(_)
        | TemplatePart::File(_)
        | TemplatePart::Secret(_) => true,
    };
    let mut before_query = parts.iter().take_while(is_before_query);
    before_query.any(|it| matches!(it, TemplatePart::Secret(_) | TemplatePart::Input(_)))
}
