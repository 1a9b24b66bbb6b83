//! Parsing of prompts. Pure.

use mcp_host_model::RawJson;

/// A parsed prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// List the tools.
    Tools,
    /// Show the states of the servers.
    Servers,
    /// Call a tool.
    Call {
        /// The tool.
        tool: String,
        /// The arguments: a JSON object.
        arguments: RawJson,
    },
    /// Not a command; the reply.
    Invalid(String),
}

const USAGE: &str = "Use `/tools`, `/servers`, or a tool with its arguments: `/echo {\"text\": \"hello\"}`.";

impl Command {
    /// Parses a prompt.
    pub(crate) fn parse(text: &str) -> Command {
        let Some(command) = text.trim().strip_prefix('/') else { return Command::Invalid(USAGE.to_owned()) };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("", _) => Command::Invalid(USAGE.to_owned()),
            ("tools", "") => Command::Tools,
            ("servers", "") => Command::Servers,
            (tool, "") => Command::Call { tool: tool.to_owned(), arguments: RawJson::empty_object() },
            (tool, arguments) => match RawJson::parse(arguments.as_bytes().to_vec().into()) {
                Ok(arguments) if arguments.is_object() => Command::Call { tool: tool.to_owned(), arguments },
                Ok(_) => Command::Invalid("The arguments of a tool must be a JSON object.".to_owned()),
                Err(error) => Command::Invalid(format!("The arguments are not valid JSON: {error}.")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match Command::parse(text) {
            Command::Tools => "tools".to_owned(),
            Command::Servers => "servers".to_owned(),
            Command::Call { tool, arguments } => format!("{tool} {}", arguments.as_str()),
            Command::Invalid(reply) => format!("? {reply}"),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn prompt_names_a_tool_and_its_arguments() {
        check(" /tools ", "tools");
        check("/servers", "servers");
        check("/now", "now {}");
        check("/a__echo\n{\"text\": \"hi\"}", "a__echo {\"text\": \"hi\"}");
        check("/echo [1]", "? The arguments of a tool must be a JSON object.");
        check("hello", &format!("? {USAGE}"));
        check("/", &format!("? {USAGE}"));
    }
}
