//! Asks at the terminal whether a call may be sent.

use std::io;
use std::sync::Arc;

use mcp_host_model::ToolAction;
use mcp_host_runtime::{
    AnswerFuture, AnswerScope, AnswerVerdict, ApprovalPrompt, CallAnswer, CallQuestion, NoAnswer,
};
use tokio::sync::Mutex;

use crate::config::context::Context;
use crate::output::console::{Console, Report};
use crate::output::progress::ProgressDisplay;
use crate::output::question::is_interactive;
use crate::output::{sanitize, shown_arguments};
use crate::runtime::{run_blocking, system};

/// The prompt of a command with a user: its terminal. Without one, calls that need an approval are refused.
pub(crate) fn call_prompt(context: &Context, progress: &ProgressDisplay) -> Arc<dyn ApprovalPrompt> {
    if is_interactive() {
        let (console, progress) = (context.console, progress.clone());
        Arc::new(TerminalPrompt { console, progress, turn: Arc::default() })
    } else {
        Arc::new(NoPrompt("there is no terminal to ask at"))
    }
}

/// Refuses calls that need an approval, for this reason.
pub(crate) struct NoPrompt(pub(crate) &'static str);

impl ApprovalPrompt for NoPrompt {
    fn ask(&self, question: Arc<CallQuestion>) -> AnswerFuture {
        let mut refusal = NoAnswer::new(self.0);
        let tool = sanitize::line(&question.tool);
        refusal.help = Some(format!("call it at a terminal, or add `--call-rule 'allow tools={tool}'`"));
        Box::pin(async move { Err(refusal) })
    }
}

/// Asks at the terminal, one question after the other.
struct TerminalPrompt {
    console: Console,
    progress: ProgressDisplay,
    turn: Arc<Mutex<()>>,
}

impl ApprovalPrompt for TerminalPrompt {
    fn ask(&self, question: Arc<CallQuestion>) -> AnswerFuture {
        let (console, progress, turn) = (self.console, self.progress.clone(), Arc::clone(&self.turn));
        Box::pin(async move {
            let _turn = turn.lock().await;
            progress.clear();
            let text = question_text(&question);
            let words = "Allow it? [y] once, [s] this session, [a] always, [N] no: ";
            run_blocking(move || console.print(&Report::err(text + words))).await;
            let failed = |error: io::Error| NoAnswer::new(format!("the terminal cannot be read: {error}"));
            let line = system::read_terminal_line().await.map_err(failed)?;
            progress.resume();
            Ok(parse_answer(&line))
        })
    }
}

/// What a question is about, in lines.
fn question_text(question: &CallQuestion) -> String {
    let CallQuestion { server, tool, action, arguments, user, rule, is_changed, .. } = question;
    let tool = sanitize::line(tool);
    let mut text = format!("The call of `{tool}` on server `{server}` needs your approval.\n");
    let action = match action {
        ToolAction::Reads => "it changes nothing, by its approved annotations",
        ToolAction::Writes => "it changes something and destroys nothing, by its approved annotations",
        ToolAction::Destructive => "it may change or destroy something",
    };
    text.push_str(&format!("  effect: {action}\n"));
    if *is_changed {
        text.push_str("  changed: the tool or its server is not the one that you answered about before\n");
    }
    if let Some(user) = user {
        text.push_str(&format!("  user: {}\n", sanitize::line(user)));
    }
    text.push_str(&format!(
        "  arguments: {}\n  rule: {}\n",
        sanitize::visible(&shown_arguments(arguments.as_str())),
        sanitize::line(rule)
    ));
    text
}

/// Parses an answer. Anything else than the listed words declines this call.
fn parse_answer(line: &str) -> CallAnswer {
    let allow = |scope| CallAnswer { verdict: AnswerVerdict::Allow, scope };
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => allow(AnswerScope::Once),
        "s" | "session" => allow(AnswerScope::Session),
        "a" | "always" => allow(AnswerScope::Always),
        _ => CallAnswer { verdict: AnswerVerdict::Deny, scope: AnswerScope::Once },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_016_only_listed_words_allow() {
        let check = |line: &str, want: Option<AnswerScope>| {
            let answer = parse_answer(line);
            let scope = (answer.verdict == AnswerVerdict::Allow).then_some(answer.scope);
            assert_eq!(scope, want, "{line}");
        };
        check("y\n", Some(AnswerScope::Once));
        check("Session\n", Some(AnswerScope::Session));
        check("a", Some(AnswerScope::Always));
        for line in ["", "\n", "n\n", "yy\n", "all\n"] {
            check(line, None);
        }
    }
}
