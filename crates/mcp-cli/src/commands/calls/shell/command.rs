//! The commands of the shell. Pure.

/// Name, arguments and description of every command, for help and completion.
pub(super) const COMMANDS: [(&str, &str, &str); 15] = [
    ("tools", "PATTERN…", "list the tools, or only some: `tools get_*`"),
    ("schema", "TOOL", "show one tool with its arguments"),
    ("call", "TOOL ARGS…", "call a tool; `call` may be left out"),
    ("prompts", "", "list the prompts"),
    ("prompt", "PROMPT name=value…", "get a prompt"),
    ("resources", "", "list resources and resource templates"),
    ("read", "URI", "read a resource"),
    ("servers", "", "list the servers and their errors"),
    ("problems", "", "list the problems"),
    ("reload", "", "reload the file now"),
    ("restart", "SERVER", "restart a server"),
    ("disable", "SERVER", "stop a server until it is restarted"),
    ("help", "", "show this help"),
    ("exit", "", "end the shell, like Ctrl-D; Ctrl-C cancels a call"),
    ("quit", "", "end the shell"),
];

/// A command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellCommand {
    Empty,
    Tools(Vec<String>),
    Schema(String),
    Call { tool: String, words: Vec<String> },
    Prompts,
    Prompt { name: String, words: Vec<String> },
    Resources,
    Read(String),
    Servers,
    Problems,
    Reload,
    Restart(String),
    Disable(String),
    Help,
    Exit,
}

/// Parses the words of a line. An unknown command is the name of a tool. Fails with a message.
pub(super) fn parse(mut words: Vec<String>) -> Result<ShellCommand, String> {
    if words.is_empty() || words[0].starts_with('#') {
        return Ok(ShellCommand::Empty);
    }
    let rest = words.split_off(1);
    let first = words.remove(0);
    let without_arguments = |command: ShellCommand| match rest.first() {
        None => Ok(command),
        Some(extra) => Err(format!("`{first}` takes no arguments, but got `{extra}`")),
    };
    let with_one_argument = |command: fn(String) -> ShellCommand, what: &str| match rest.as_slice() {
        [argument] => Ok(command(argument.clone())),
        [] => Err(format!("`{first}` needs {what}")),
        [_, extra, ..] => Err(format!("`{first}` takes only {what}, but also got `{extra}`")),
    };
    let with_name_and_words =
        |command: fn(String, Vec<String>) -> ShellCommand, what: &str| match rest.split_first() {
            Some((name, words)) => Ok(command(name.clone(), words.to_vec())),
            None => Err(format!("`{first}` needs {what} and its arguments")),
        };
    match first.as_str() {
        "tools" => Ok(ShellCommand::Tools(rest)),
        "schema" => with_one_argument(ShellCommand::Schema, "the name of a tool"),
        "call" => with_name_and_words(|tool, words| ShellCommand::Call { tool, words }, "the name of a tool"),
        "prompts" => without_arguments(ShellCommand::Prompts),
        "prompt" => {
            with_name_and_words(|name, words| ShellCommand::Prompt { name, words }, "the name of a prompt")
        }
        "resources" => without_arguments(ShellCommand::Resources),
        "read" => with_one_argument(ShellCommand::Read, "the URI of a resource"),
        "servers" => without_arguments(ShellCommand::Servers),
        "problems" => without_arguments(ShellCommand::Problems),
        "reload" => without_arguments(ShellCommand::Reload),
        "restart" => with_one_argument(ShellCommand::Restart, "the name of a server"),
        "disable" => with_one_argument(ShellCommand::Disable, "the name of a server"),
        "help" | "?" => without_arguments(ShellCommand::Help),
        "exit" | "quit" => without_arguments(ShellCommand::Exit),
        _ => Ok(ShellCommand::Call { tool: first, words: rest }),
    }
}

/// The help text, one line per command.
pub(super) fn help() -> String {
    let mut text = String::new();
    for (name, arguments, description) in COMMANDS {
        let usage = format!("{name} {arguments}");
        text.push_str(&format!("  {usage:<26}  {description}\n"));
    }
    text.push_str("\nARGS is a JSON object or name=value pairs; name:=JSON passes a value as JSON.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::calls::shell::tokenize::split_words;

    #[track_caller]
    fn check(line: &str, want: Result<ShellCommand, &str>) {
        assert_eq!(parse(split_words(line).unwrap()), want.map_err(str::to_owned));
    }

    #[test]
    fn first_word_is_a_command_or_a_tool() {
        check("", Ok(ShellCommand::Empty));
        check("# a note", Ok(ShellCommand::Empty));
        check("tools", Ok(ShellCommand::Tools(Vec::new())));
        check("tools a* b", Ok(ShellCommand::Tools(vec!["a*".to_owned(), "b".to_owned()])));
        check("?", Ok(ShellCommand::Help));
        let call = |tool: &str, words: &[&str]| ShellCommand::Call {
            tool: tool.to_owned(),
            words: words.iter().map(|it| (*it).to_owned()).collect(),
        };
        check("echo text=a", Ok(call("echo", &["text=a"])));
        check("call tools text=a", Ok(call("tools", &["text=a"])));
        check("restart demo", Ok(ShellCommand::Restart("demo".to_owned())));
        check("prompts x", Err("`prompts` takes no arguments, but got `x`"));
        check("read", Err("`read` needs the URI of a resource"));
        check("restart a b", Err("`restart` takes only the name of a server, but also got `b`"));
        check("call", Err("`call` needs the name of a tool and its arguments"));
    }

    #[test]
    fn every_command_has_help() {
        let help = help();
        assert!(COMMANDS.iter().all(|(name, _, _)| help.contains(&format!("  {name} "))), "{help}");
        assert!(help.lines().all(|it| it.chars().count() <= 80), "{help}");
    }
}
