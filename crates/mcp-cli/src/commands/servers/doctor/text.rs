//! The report on a server as text: the problem and its help first, then one line per step.

use std::fmt::Write as _;
use std::time::Duration;

use mcp_host_config::Colour;

use super::report::{ServerReport, Step, StepOutcome};
use crate::output::{sanitize, style};

/// The report on one server.
pub(super) fn report_text(report: &ServerReport, colour: Colour) -> String {
    let ServerReport { name, transport, target, steps } = report;
    let problem = main_problem_index(steps);
    let outcome = problem.map_or(StepOutcome::Passed, |index| steps[index].outcome);
    let mut text =
        format!("{} {}", mark(outcome, colour), style::paint(colour, style::NOTE, &sanitize::line(name)));
    let connection = match (transport, target) {
        (Some(transport), Some(target)) => {
            style::paint(colour, style::DIM, &format!("  {transport}  {}", sanitize::line(target)))
        }
        (_, _) => String::new(),
    };
    match problem.map(|index| &steps[index]) {
        None => {
            text.push_str(&connection);
            text.push('\n');
        }
        Some(Step { message, help, .. }) => {
            let _ = writeln!(text, "  {}", sanitize::line(message));
            if let Some(help) = help {
                text.push_str(&style::help(colour, &sanitize::line(help)));
            }
            if !connection.is_empty() {
                text.push_str(&connection);
                text.push('\n');
            }
        }
    }
    for (index, step) in steps.iter().enumerate() {
        if Some(index) == problem {
            let short = Step { message: "see above".to_owned(), help: None, ..step.clone() };
            push_step(&mut text, &short, colour);
        } else {
            push_step(&mut text, step, colour);
        }
    }
    text
}

/// The index of the step that is reported first: the failed or interrupted one, or else the first with a warning.
fn main_problem_index(steps: &[Step]) -> Option<usize> {
    let has_failed = |step: &Step| matches!(step.outcome, StepOutcome::Failed(_) | StepOutcome::Interrupted);
    let failed = steps.iter().position(has_failed);
    failed.or_else(|| steps.iter().position(|step| step.outcome == StepOutcome::Warning))
}

fn mark(outcome: StepOutcome, colour: Colour) -> String {
    let (style, mark) = match outcome {
        StepOutcome::Passed => (style::SUCCESS, "✓"),
        StepOutcome::Warning => (style::WARNING, "!"),
        StepOutcome::Failed(_) => (style::FAILURE, "✗"),
        StepOutcome::Interrupted => (style::WARNING, "…"),
    };
    style::paint(colour, style, mark)
}

fn push_step(text: &mut String, step: &Step, colour: Colour) {
    let Step { name, outcome, message, help, duration } = step;
    let _ = write!(text, "  {} {name:13}  {}", mark(*outcome, colour), sanitize::line(message));
    if let Some(time) = duration_text(*duration) {
        text.push_str(&style::paint(colour, style::DIM, &format!("  ({time})")));
    }
    text.push('\n');
    if let Some(help) = help {
        text.push_str("  ");
        text.push_str(&style::help(colour, &sanitize::line(help)));
    }
}

/// `12 ms` or `3.4 s`; `None` below half a millisecond.
fn duration_text(duration: Duration) -> Option<String> {
    match duration.as_secs_f64() {
        seconds if seconds < 0.0005 => None,
        seconds if seconds < 1.0 => Some(format!("{:.0} ms", seconds * 1000.0)),
        seconds => Some(format!("{seconds:.1} s")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::FailureCause;
    use super::*;

    #[test]
    fn problem_comes_first_and_each_step_has_a_line() {
        let step = |name, outcome, message: &str, micros| Step {
            name,
            outcome,
            message: message.into(),
            help: None,
            duration: Duration::from_micros(micros),
        };
        let report = ServerReport {
            name: "a\u{1b}[2J".into(),
            transport: Some("stdio"),
            target: Some("npx".into()),
            steps: vec![
                step("program", StepOutcome::Passed, "/usr/bin/npx", 10),
                step("handshake", StepOutcome::Warning, "slow", 12_345_678),
                Step {
                    help: Some("fix it".into()),
                    ..step("tools", StepOutcome::Failed(FailureCause::Environment), "no\nlist", 1_600)
                },
            ],
        };
        assert_eq!(
            report_text(&report, Colour::Never),
            "✗ a  no list\n  help: fix it\n  stdio  npx\n  ✓ program        /usr/bin/npx\n  \
             ! handshake      slow  (12.3 s)\n  ✗ tools          see above  (2 ms)\n"
        );
    }
}
