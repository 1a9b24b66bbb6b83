//! What a line of the shell asks for. Pure.

/// Every command, with what it takes and does: for help, and for completion.
pub(super) const COMMANDS: [(&str, &str, &str); 15] = [
    ("tools", "", "the tools, as `mcp-host tools` shows them"),
    ("schema", "TOOL", "one tool with its arguments"),
    ("call", "TOOL ARGS…", "calls a tool; its name alone does it too"),
    ("prompts", "", "the prompts"),
    ("prompt", "PROMPT name=value…", "fills a prompt in"),
    ("resources", "", "the resources, and templates of resources"),
    ("read", "URI", "reads a resource"),
    ("servers", "", "the servers, and what is wrong with them"),
    ("problems", "", "what should be known"),
    ("reload", "", "reads the file now; it is followed anyway"),
    ("restart", "SERVER", "starts a server anew"),
    ("disable", "SERVER", "switches a server off until it is restarted"),
    ("help", "", "this"),
    ("exit", "", "the end, as Ctrl-D is; Ctrl-C ends a call"),
    ("quit", "", "the end"),
];

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Nothing,
    Tools,
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

/// Reads the words of a line. What is no command is the name of a tool. Fails with a sentence.
pub(super) fn command(mut words: Vec<String>) -> Result<Command, String> {
    if words.is_empty() || words[0].starts_with('#') {
        return Ok(Command::Nothing);
    }
    let rest = words.split_off(1);
    let first = words.remove(0);
    let plain = |command: Command| match rest.first() {
        None => Ok(command),
        Some(it) => Err(format!("`{first}` takes nothing, and is given `{it}`")),
    };
    let one = |command: fn(String) -> Command, what: &str| match rest.as_slice() {
        [it] => Ok(command(it.clone())),
        [] => Err(format!("`{first}` takes {what}")),
        [_, more, ..] => Err(format!("`{first}` takes {what} and nothing else, and is given `{more}`")),
    };
    let named = |command: fn(String, Vec<String>) -> Command, what: &str| match rest.split_first() {
        Some((name, words)) => Ok(command(name.clone(), words.to_vec())),
        None => Err(format!("`{first}` takes {what}, and what that takes")),
    };
    match first.as_str() {
        "tools" => plain(Command::Tools),
        "schema" => one(Command::Schema, "the name of a tool"),
        "call" => named(|tool, words| Command::Call { tool, words }, "the name of a tool"),
        "prompts" => plain(Command::Prompts),
        "prompt" => named(|name, words| Command::Prompt { name, words }, "the name of a prompt"),
        "resources" => plain(Command::Resources),
        "read" => one(Command::Read, "the URI of a resource"),
        "servers" => plain(Command::Servers),
        "problems" => plain(Command::Problems),
        "reload" => plain(Command::Reload),
        "restart" => one(Command::Restart, "the name of a server"),
        "disable" => one(Command::Disable, "the name of a server"),
        "help" | "?" => plain(Command::Help),
        "exit" | "quit" => plain(Command::Exit),
        _ => Ok(Command::Call { tool: first, words: rest }),
    }
}

/// All commands, a line each.
pub(super) fn help() -> String {
    let mut res = String::new();
    for (name, takes, does) in COMMANDS {
        let left = format!("{name} {takes}");
        res.push_str(&format!("  {left:<26}  {does}\n"));
    }
    res.push_str("\nARGS are a JSON object, or name=value for each; name:=JSON says a value as JSON.\n");
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::shell::words::words;

    #[track_caller]
    fn check(line: &str, want: Result<Command, &str>) {
        assert_eq!(command(words(line).unwrap()), want.map_err(str::to_owned));
    }

    #[test]
    fn the_first_word_is_a_command_or_a_tool() {
        check("", Ok(Command::Nothing));
        check("# a note", Ok(Command::Nothing));
        check("tools", Ok(Command::Tools));
        check("?", Ok(Command::Help));
        let call = |tool: &str, words: &[&str]| Command::Call {
            tool: tool.to_owned(),
            words: words.iter().map(|it| (*it).to_owned()).collect(),
        };
        check("echo text=a", Ok(call("echo", &["text=a"])));
        check("call tools text=a", Ok(call("tools", &["text=a"])));
        check("restart demo", Ok(Command::Restart("demo".to_owned())));
        check("tools x", Err("`tools` takes nothing, and is given `x`"));
        check("read", Err("`read` takes the URI of a resource"));
        check("restart a b", Err("`restart` takes the name of a server and nothing else, and is given `b`"));
        check("call", Err("`call` takes the name of a tool, and what that takes"));
    }

    #[test]
    fn every_command_has_its_help() {
        let help = help();
        assert!(COMMANDS.iter().all(|(name, _, _)| help.contains(&format!("  {name} "))), "{help}");
        assert!(help.lines().all(|it| it.chars().count() <= 80), "{help}");
    }
}
