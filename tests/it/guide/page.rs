//! The executable parts of a page: files, commands, and their output.
//!
//! A code block with `file=PATH` after its language is a file. A `console` block has commands after `$ `, and their
//! output. `needs=npm`, `needs=curl` and `needs=landlock` name a requirement.

/// An executable part.
pub(crate) enum Block {
    /// A file.
    File { path: String, text: String },
    /// Commands in order.
    Commands { needs: Requirements, steps: Vec<Step> },
}

/// The requirements of a block.
pub(crate) enum Requirements {
    /// The program alone.
    Nothing,
    /// The npm packages of the tests.
    Npm,
    /// Landlock in the kernel, which a sandbox needs.
    Landlock,
    /// The program curl.
    Curl,
}

/// A command and its expected output.
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) printed: String,
}

/// The executable blocks of a page.
pub(crate) fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut res = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|it| *it != "```").collect();
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        if let Some(path) = rest.strip_prefix("file=") {
            res.push(Block::File { path: path.to_owned(), text: body.join("\n") + "\n" });
            continue;
        }
        match (language, rest) {
            ("console", "") => {
                res.push(Block::Commands { needs: Requirements::Nothing, steps: steps(page, &body) })
            }
            ("console", "needs=landlock") => {
                res.push(Block::Commands { needs: Requirements::Landlock, steps: steps(page, &body) });
            }
            ("console", "needs=npm") => {
                res.push(Block::Commands { needs: Requirements::Npm, steps: steps(page, &body) });
            }
            ("console", "needs=curl") => {
                res.push(Block::Commands { needs: Requirements::Curl, steps: steps(page, &body) });
            }
            ("sh" | "bash" | "shell", _) if !rest.starts_with("skip=") => {
                panic!(
                    "{page}: commands stand in a block of the language `console`, which is tried: {body:?}"
                )
            }
            _ => {}
        }
    }
    res
}

fn steps(page: &str, body: &[&str]) -> Vec<Step> {
    let mut res: Vec<Step> = Vec::new();
    for line in body {
        match (line.strip_prefix("$ "), res.last_mut()) {
            (Some(command), _) => res.push(Step { command: command.to_owned(), printed: String::new() }),
            (None, Some(step)) => step.printed += &format!("{line}\n"),
            (None, None) => panic!("{page}: what prints this? {line}"),
        }
    }
    res
}

/// Whether `printed` matches the page. A line `...` matches any lines, `[..]` any text in a line. Spaces at line ends
/// and blank lines at the end are ignored.
pub(crate) fn agrees(said: &str, printed: &str) -> bool {
    let lines =
        |it: &str| -> Vec<String> { it.trim_end().lines().map(|line| line.trim_end().to_owned()).collect() };
    lines_agree(&lines(said), &lines(printed))
}

fn lines_agree(said: &[String], printed: &[String]) -> bool {
    match said.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=printed.len()).any(|skipped| lines_agree(rest, &printed[skipped..]))
        }
        Some((line, rest)) => match printed.split_first() {
            Some((first, others)) => line_agrees(line, first) && lines_agree(rest, others),
            None => false,
        },
    }
}

fn line_agrees(said: &str, printed: &str) -> bool {
    let mut parts = said.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The targets of links within the project, without fragments.
pub(crate) fn links(text: &str) -> Vec<String> {
    let mut res = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for behind in line.split("](").skip(1) {
            let target = behind.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                res.push(target.to_owned());
            }
        }
    }
    res
}

#[test]
fn wildcards_match() {
    #[track_caller]
    fn check(said: &str, printed: &str, want: bool) {
        assert_eq!(agrees(said, printed), want, "{said:?} and {printed:?}");
    }
    check("", "", true);
    check("a\n", "a  \n\n", true);
    check("a", "b", false);
    check("a", "a\nb", false);
    check("a\nb", "a", false);
    check("...", "", true);
    check("...\nz", "a\nb\nz", true);
    check("a\n...", "b\nc", false);
    check("it took [..] ms", "it took 12 ms", true);
    check("it took [..] ms", "it took 12 s", false);
    check("[..]a[..]b", "xaxb", true);
    check("[..]a[..]b", "xbxa", false);
    check("ab[..]b", "ab", false);
}

#[test]
fn a_page_has_files_and_commands() {
    let text = "```yaml file=a/b.yaml\nx: 1\n```\n```yaml\ny: 2\n```\n```console needs=npm\n$ mcp-host check .\n\
        fine\n\n$ echo $?\n0\n```\n";
    let blocks = blocks("a page", text);
    let [Block::File { path, text }, Block::Commands { needs: Requirements::Npm, steps }] = blocks.as_slice()
    else {
        panic!("a file, and commands")
    };
    assert_eq!((path.as_str(), text.as_str()), ("a/b.yaml", "x: 1\n"));
    let steps: Vec<(&str, &str)> =
        steps.iter().map(|it| (it.command.as_str(), it.printed.as_str())).collect();
    assert_eq!(steps, [("mcp-host check .", "fine\n\n"), ("echo $?", "0\n")]);
}
