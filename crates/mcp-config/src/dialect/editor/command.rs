//! Lowers the command of an entry: a text, a list or a mapping (DIA-05).

use mcp_host_model::{ConfigValue, Severity};

use crate::de::{Field, Location, NullableField};
use crate::diagnostic::Code;
use crate::dialect::checks;
use crate::dialect::editor::fields::{self, ValueReader};
use crate::dialect::editor::wire::{Command, CommandMapping, Environment};
use crate::dialect::program_text::check_command;

/// The fields that describe a program.
pub(super) struct CommandFields {
    pub(super) command: NullableField<Command>,
    pub(super) args: NullableField<Vec<Field<String>>>,
    pub(super) env: NullableField<Environment>,
    pub(super) environment: NullableField<Environment>,
}

/// A program, its arguments and its variables.
type StdioParts = (String, Vec<ConfigValue>, Vec<(String, ConfigValue)>);

impl CommandFields {
    /// The program, its arguments and its variables.
    pub(super) fn lower(self, values: &ValueReader<'_>) -> Option<StdioParts> {
        let CommandFields { command, args, env, environment } = self;
        let context = values.context;
        let at = command.at;
        let nothing = || NullableField::absent(at);
        let is_missing = !command.is_given();
        match command.take() {
            None => {
                if is_missing {
                    let message = "'command' is required for stdio transport";
                    context.error(
                        Code::MissingCommand,
                        &at,
                        message,
                        "add the program to start, or a `url` and its `type`",
                    );
                }
                None
            }
            Some(Command::Program(program)) => {
                let has_args = args.value().is_some_and(|it| !it.is_empty());
                let args = fields::arguments(args, values);
                let env = fields::environment([env, environment, nothing()], values);
                Some((check_program(program, &at, has_args, values)?, args, env))
            }
            Some(Command::List(list)) => {
                let mut list = list.into_iter();
                let Some(first) = list.next() else {
                    context.error(
                        Code::EmptyValue,
                        &at,
                        "'command' must not be empty",
                        "write the program first",
                    );
                    return None;
                };
                let mut all = fields::texts(list.collect(), values);
                all.extend(fields::arguments(args, values));
                let env = fields::environment([env, environment, nothing()], values);
                let first_at = first.at;
                Some((check_program(first.take()?, &first_at, true, values)?, all, env))
            }
            Some(Command::Mapping(mapping)) => {
                let CommandMapping { path, args: own_args, env: own_env } = *mapping;
                if own_args.is_given() && args.is_given() {
                    let message = "the arguments are given twice; only one is allowed";
                    context.report(context.exclusive_keys_diagnostic(&args.at, &own_args.at, message));
                }
                let args = if own_args.is_given() { own_args } else { args };
                let has_args = args.value().is_some_and(|it| !it.is_empty());
                let args = fields::arguments(args, values);
                let env = fields::environment([own_env, env, environment], values);
                let path_at = path.at;
                Some((check_program(path.take()?, &path_at, has_args, values)?, args, env))
            }
        }
    }
}

/// Checks the name or path of a program.
fn check_program(program: String, at: &Location, has_args: bool, values: &ValueReader<'_>) -> Option<String> {
    let context = values.context;
    if program.trim().is_empty() {
        context.error(Code::EmptyValue, at, "'command' must not be empty", "name the program to start");
        return None;
    }
    values.without_shell_syntax().check_references(&program, at);
    if let Err(error) = checks::check_argument(&program) {
        context.report_check(at, error);
        return None;
    }
    check_command(&program, at, has_args, Severity::Error, context);
    Some(fields::editor_text(&program, values.rule))
}
