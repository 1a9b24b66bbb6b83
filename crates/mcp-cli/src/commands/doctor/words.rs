//! What an examination shows: what is wrong, what to do, and a line for each step, with its time where there is something
//! to say of it.

use std::fmt::Write as _;
use std::time::Duration;

use mcp_config::Colour;

use super::{Examined, Outcome, Step};
use crate::output::{paint, plain};

/// A server's lines: what is wrong first, and what to do about it; then the steps that led there.
pub(super) fn text(examined: &Examined, colour: Colour) -> String {
    let Examined { name, transport, target, steps } = examined;
    let first = first(steps);
    let outcome = first.map_or(Outcome::Done, |it| steps[it].outcome);
    let mut res =
        format!("{} {}", mark(outcome, colour), paint::paint(colour, paint::NOTE, &plain::line(name)));
    let about = match (transport, target) {
        (Some(transport), Some(target)) => {
            paint::paint(colour, paint::FAINT, &format!("  {transport}  {}", plain::line(target)))
        }
        (_, _) => String::new(),
    };
    match first.map(|it| &steps[it]) {
        None => {
            res.push_str(&about);
            res.push('\n');
        }
        Some(Step { message, help, .. }) => {
            let _ = writeln!(res, "  {}", plain::line(message));
            if let Some(help) = help {
                res.push_str(&paint::help(colour, &plain::line(help)));
            }
            if !about.is_empty() {
                res.push_str(&about);
                res.push('\n');
            }
        }
    }
    for (at, step) in steps.iter().enumerate() {
        match Some(at) == first {
            true => {
                line(&mut res, &Step { message: "see above".to_owned(), help: None, ..step.clone() }, colour)
            }
            false => line(&mut res, step, colour),
        }
    }
    res
}

/// The step that is told first: the one that failed, or else the first that is doubtful.
fn first(steps: &[Step]) -> Option<usize> {
    let failed = steps.iter().position(|it| matches!(it.outcome, Outcome::Failed(_)));
    failed.or_else(|| steps.iter().position(|it| it.outcome == Outcome::Doubtful))
}

fn mark(outcome: Outcome, colour: Colour) -> String {
    let (style, mark) = match outcome {
        Outcome::Done => (paint::GOOD, "✓"),
        Outcome::Doubtful => (paint::DOUBTFUL, "!"),
        Outcome::Failed(_) => (paint::BAD, "✗"),
    };
    paint::paint(colour, style, mark)
}

fn line(res: &mut String, step: &Step, colour: Colour) {
    let Step { name, outcome, message, help, took } = step;
    let _ = write!(res, "  {} {name:13}  {}", mark(*outcome, colour), plain::line(message));
    if let Some(time) = time(*took) {
        res.push_str(&paint::paint(colour, paint::FAINT, &format!("  ({time})")));
    }
    res.push('\n');
    if let Some(help) = help {
        res.push_str("  ");
        res.push_str(&paint::help(colour, &plain::line(help)));
    }
}

/// `12 ms`, `3.4 s`; nothing where it was no time at all.
fn time(took: Duration) -> Option<String> {
    match took.as_secs_f64() {
        less if less < 0.0005 => None,
        less if less < 1.0 => Some(format!("{:.0} ms", less * 1000.0)),
        more => Some(format!("{more:.1} s")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Blame;
    use super::*;

    #[test]
    fn what_is_wrong_stands_first_and_each_step_has_a_line() {
        let step = |name, outcome, message: &str, took| Step {
            name,
            outcome,
            message: message.into(),
            help: None,
            took: Duration::from_micros(took),
        };
        let examined = Examined {
            name: "a\u{1b}[2J".into(),
            transport: Some("stdio"),
            target: Some("npx".into()),
            steps: vec![
                step("program", Outcome::Done, "/usr/bin/npx", 10),
                step("handshake", Outcome::Doubtful, "slow", 12_345_678),
                Step {
                    help: Some("mend it".into()),
                    ..step("tools", Outcome::Failed(Blame::World), "no\nlist", 1_600)
                },
            ],
        };
        assert_eq!(
            text(&examined, Colour::Never),
            "✗ a  no list\n  help: mend it\n  stdio  npx\n  ✓ program        /usr/bin/npx\n  \
             ! handshake      slow  (12.3 s)\n  ✗ tools          see above  (2 ms)\n"
        );
    }
}
