//! Lowers the command of an entry: a text, a list or a mapping (DIA-05), with its variables and working directory.

use mcp_host_model::{EnvInheritance, Sandbox, Severity, StdioSpec};

use crate::de::Location;
use crate::diagnostic::Code;
use crate::dialect::checks;
use crate::dialect::editor::entry_fields::StdioFields;
use crate::dialect::editor::fields::{self, ValueReader};
use crate::dialect::editor::wire::{CommandMapping, CommandValue};
use crate::dialect::program_text::check_command;
use crate::dialect::sandbox;

impl StdioFields {
    /// Lowers the fields of an entry at `at` to the spec of a child process. `None` if the command is missing or
    /// invalid, which is reported.
    pub(super) fn lower(self, at: &Location, values: &ValueReader<'_>) -> Option<StdioSpec> {
        let StdioFields {
            command,
            mut args,
            env,
            environment,
            required_variables,
            env_file,
            cwd,
            sandbox,
            sandbox_enabled,
        } = self;
        let context = values.context;
        let plain = values.without_shell_syntax();
        let cwd_at = cwd.at;
        let cwd = cwd.into_value().filter(|it| !it.is_empty()).map(|text| {
            let text = fields::normalize_references(&text, values.rule);
            plain.check_references(&text, &cwd_at);
            plain.rewrite_start_text(text, &cwd_at, Severity::Warning)
        });
        let env_file = env_file.into_value().filter(|it| !it.is_empty());
        let env_file = env_file.map(|it| plain.value(it, at, checks::check_argument));

        let command_at = command.at;
        let is_missing = !command.is_given();
        let mut environments = vec![env, environment];
        let mut is_list = false;
        let mut all_args = Vec::new();
        let (program, program_at) = match command.into_value() {
            None => {
                if is_missing {
                    let message = "'command' is required for stdio transport";
                    let help = "add the program to start, or a `url` and its `type`";
                    context.error(Code::MissingCommand, &command_at, message, help);
                }
                return None;
            }
            Some(CommandValue::Program(program)) => (Some(program), command_at),
            Some(CommandValue::List(list)) => {
                let mut list = list.into_iter();
                let Some(first) = list.next() else {
                    let message = "'command' must not be empty";
                    context.error(Code::EmptyValue, &command_at, message, "write the program first");
                    return None;
                };
                is_list = true;
                all_args.extend(list);
                let at = first.at;
                (first.into_value(), at)
            }
            Some(CommandValue::Mapping(mapping)) => {
                let CommandMapping { path, args: own_args, env: own_env } = *mapping;
                if own_args.is_given() && args.is_given() {
                    let message = "the arguments are given twice; only one is allowed";
                    context.report(context.exclusive_keys_diagnostic(&args.at, &own_args.at, message));
                }
                if own_args.is_given() {
                    args = own_args;
                }
                environments.insert(0, own_env);
                let at = path.at;
                (path.into_value(), at)
            }
        };
        all_args.extend(args.into_value().unwrap_or_default());
        let has_args = is_list || !all_args.is_empty();
        let args = fields::lower_args(all_args, values);
        let mut env = fields::lower_environment(environments, values);
        let program = check_program(program?, &program_at, has_args, values)?;
        fields::add_required_variables(required_variables, &mut env, context);
        let mut spec = StdioSpec::new(program);
        (spec.args, spec.env, spec.env_file, spec.cwd) = (args, env, env_file, cwd);
        spec.inherit = EnvInheritance::All;
        spec.sandbox = sandbox::lower(sandbox, sandbox_enabled.into_value(), context).map(|mut sandbox| {
            let Sandbox { read, write, deny_read, deny_write, .. } = &mut sandbox;
            for path in [read, write, deny_read, deny_write].into_iter().flatten() {
                *path = fields::normalize_references(path, values.rule);
            }
            sandbox
        });
        Some(spec)
    }
}

/// Checks the name or path of a program. Returns it in the form of the model; `None` if it is invalid, which is
/// reported.
fn check_program(program: String, at: &Location, has_args: bool, values: &ValueReader<'_>) -> Option<String> {
    let context = values.context;
    if program.trim().is_empty() {
        context.error(Code::EmptyValue, at, "'command' must not be empty", "name the program to start");
        return None;
    }
    let plain = values.without_shell_syntax();
    plain.check_references(&program, at);
    if !context.report_check(at, checks::check_argument(&program)) {
        return None;
    }
    check_command(&program, at, has_args, Severity::Error, context);
    let program = fields::normalize_references(&program, values.rule);
    Some(plain.rewrite_start_text(program, at, Severity::Warning))
}
