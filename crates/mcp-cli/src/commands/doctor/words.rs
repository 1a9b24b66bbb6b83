//! What an examination shows: a line for each step, the times on the right where there is something to say of them.

use std::fmt::Write as _;
use std::time::Duration;

use mcp_config::Colour;

use super::{Examined, Outcome, Step};
use crate::output::{paint, plain};

/// A server's lines.
pub(super) fn text(examined: &Examined, colour: Colour) -> String {
    let Examined { name, transport, target, steps } = examined;
    let mut res = paint::paint(colour, paint::NOTE, &plain::line(name));
    if let (Some(transport), Some(target)) = (transport, target) {
        let about = format!("  {transport}  {}", plain::line(target));
        res.push_str(&paint::paint(colour, paint::FAINT, &about));
    }
    res.push('\n');
    for step in steps {
        line(&mut res, step, colour);
    }
    res
}

fn line(res: &mut String, step: &Step, colour: Colour) {
    let Step { name, outcome, message, help, took } = step;
    let (style, mark) = match outcome {
        Outcome::Done => (paint::GOOD, "✓"),
        Outcome::Doubtful => (paint::DOUBTFUL, "!"),
        Outcome::Failed(_) => (paint::BAD, "✗"),
    };
    let mark = paint::paint(colour, style, mark);
    let _ = write!(res, "  {mark} {name:13}  {}", plain::line(message));
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
    fn each_step_has_a_line_and_the_last_says_what_to_do() {
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
            "a  stdio  npx\n  ✓ program        /usr/bin/npx\n  ! handshake      slow  (12.3 s)\n  \
             ✗ tools          no list  (2 ms)\n    help: mend it\n"
        );
    }
}
