//! Parsing of prompts. Pure.

use mcp_model::RawJson;

/// A parsed prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ask {
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
    /// Not understood; the reply.
    Unclear(String),
}

const USAGE: &str = "Say `/tools`, `/servers`, or a tool with its arguments: `/echo {\"text\": \"hello\"}`.";

impl Ask {
    /// Parses a prompt.
    pub(crate) fn read(text: &str) -> Ask {
        let Some(command) = text.trim().strip_prefix('/') else { return Ask::Unclear(USAGE.to_owned()) };
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (word, rest.trim()) {
            ("", _) => Ask::Unclear(USAGE.to_owned()),
            ("tools", "") => Ask::Tools,
            ("servers", "") => Ask::Servers,
            (tool, "") => Ask::Call { tool: tool.to_owned(), arguments: RawJson::empty_object() },
            (tool, arguments) => match RawJson::parse(arguments.as_bytes().to_vec().into()) {
                Ok(arguments) if arguments.is_object() => Ask::Call { tool: tool.to_owned(), arguments },
                Ok(_) => Ask::Unclear("The arguments of a tool are a JSON object.".to_owned()),
                Err(error) => Ask::Unclear(format!("The arguments are no JSON: {error}.")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match Ask::read(text) {
            Ask::Tools => "tools".to_owned(),
            Ask::Servers => "servers".to_owned(),
            Ask::Call { tool, arguments } => format!("{tool} {}", arguments.as_str()),
            Ask::Unclear(words) => format!("? {words}"),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn a_prompt_names_a_tool_and_its_arguments() {
        check(" /tools ", "tools");
        check("/servers", "servers");
        check("/now", "now {}");
        check("/a__echo\n{\"text\": \"hi\"}", "a__echo {\"text\": \"hi\"}");
        check("/echo [1]", "? The arguments of a tool are a JSON object.");
        check("hello", &format!("? {USAGE}"));
        check("/", &format!("? {USAGE}"));
    }
}
