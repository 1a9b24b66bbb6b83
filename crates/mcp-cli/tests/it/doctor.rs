//! `doctor`: how far it was possible to go with a server, and what to do about the first step that failed.

use std::net::TcpListener;

use crate::support::{DEMO, HttpDemo, PROGRAM, Place, Run};

/// A Dominds file with one stdio server.
fn stdio(command: &str) -> String {
    format!("version: 1\nservers:\n  broken:\n    transport: stdio\n    command: {command}\n")
}

/// A Dominds file with one server over HTTP.
fn http(url: &str) -> String {
    format!("version: 1\nservers:\n  broken:\n    transport: streamable_http\n    url: {url}\n")
}

/// The last step of the one server has this name, and its words and its help have these in them.
#[track_caller]
fn check(place: &Place, exit: i32, want: (&str, &str, &str)) {
    let run = place.run(&["doctor", ".", "--format", "json"]);
    assert_eq!(run.code, Some(exit), "{run:?}");
    let document = run.json();
    let steps = document["servers"][0]["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    let has = |key: &str, part: &str| last[key].as_str().unwrap_or_default().contains(part);
    assert!(
        last["step"] == want.0
            && last["outcome"] == "failed"
            && has("message", want.1)
            && has("help", want.2),
        "{last:#}"
    );
    assert!(steps.iter().rev().skip(1).all(|it| it["outcome"] != "failed"), "{steps:#?}");
    // The same for people: the failure is the only line with this mark.
    let run = place.run(&["doctor", "."]);
    assert_eq!(run.out.matches("  ✗ ").count(), 1, "{run:?}");
}

#[test]
fn a_sound_server_passes_every_step() {
    let place = Place::dominds(DEMO);
    let run = place.run(&["doctor", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let steps: Vec<&str> = run.out.lines().skip(1).filter_map(|it| it.split_whitespace().nth(1)).collect();
    assert_eq!(
        steps,
        ["configuration", "program", "handshake", "tools", "prompts", "resources", "end"],
        "{run:?}"
    );
    assert!(run.out.contains("modern era, protocol 2026-07-28"), "{run:?}");
    let demo = HttpDemo::start(&place);
    place.write(".minds/mcp.yaml", &http(&demo.url));
    let document = place.run(&["doctor", ".", "--format", "json"]).json();
    let steps = document["servers"][0]["steps"].as_array().unwrap();
    assert!(steps.iter().all(|it| it["outcome"] == "done"), "{steps:#?}");
    let names: Vec<&str> = steps.iter().filter_map(|it| it["step"].as_str()).collect();
    assert_eq!(
        names,
        ["configuration", "address", "port", "handshake", "tools", "prompts", "resources", "end"]
    );
}

#[test]
fn what_keeps_a_program_from_starting_is_named() {
    for (command, remedy) in [("npx", "install Node.js"), ("uvx", "install uv"), ("docker", "install Docker")]
    {
        let place = Place::dominds(&stdio(command));
        let output = place.command(&["doctor", "."]).env("PATH", place.path()).output().unwrap();
        let run = Run::of(output);
        assert_eq!(run.code, Some(3), "{run:?}");
        let want = format!("✗ broken  {command} is not on the PATH\n  help: {remedy}");
        assert!(run.out.starts_with(&want), "{run:?}");
    }
    let elsewhere = stdio("sh") + "    env:\n      PATH: /no/such/folder\n";
    check(
        &Place::dominds(&elsewhere),
        3,
        ("program", "not on the PATH that the entry's `env` sets", "leave PATH out"),
    );
    check(
        &Place::dominds(&stdio("/no/such/x")),
        3,
        ("program", "there is no file /no/such/x", "correct the path"),
    );
    let place = Place::dominds(&stdio("./text"));
    place.write("text", "");
    check(&place, 3, ("program", "may not be executed", "chmod +x"));
    let lost = stdio("sh") + "    cwd: /no/such/folder\n";
    check(&Place::dominds(&lost), 3, ("program", "/no/such/folder is not there", "`cwd`"));
    let missing = stdio("sh") + "    env:\n      TOKEN: { env: NO_SUCH_VARIABLE_OF_OURS }\n";
    check(&Place::dominds(&missing), 1, ("configuration", "NO_SUCH_VARIABLE_OF_OURS", ""));
    check(
        &Place::dominds("version: 1\nservers:\n  broken:\n    transport: stdio\n"),
        1,
        ("configuration", "command", ""),
    );
}

#[test]
fn what_a_process_does_instead_of_a_handshake_is_named() {
    let scripted = |script: &str| {
        let place = Place::dominds(&stdio("broken"));
        place.script("broken", script);
        place
    };
    check(&scripted("echo no licence >&2; exit 3"), 3, ("handshake", "no licence", "by hand"));
    check(&scripted("echo Welcome; exit 0"), 3, ("handshake", "Welcome", "logs belong on standard error"));
}

#[test]
fn noise_and_force_are_doubtful() {
    let place = Place::dominds(&stdio("noisy"));
    place.script(
        "noisy",
        &format!("echo Welcome to the server; {PROGRAM} demo-server; trap '' TERM; sleep 600"),
    );
    let run = place.run(&["doctor", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out.starts_with("! broken  21 bytes on its standard output are no messages\n  help: "),
        "{run:?}"
    );
    assert!(run.out.contains("  ! noise          see above"), "{run:?}");
    assert!(run.out.contains("  ! end            it did not end when it was asked to"), "{run:?}");
}

#[test]
fn where_a_url_leads_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = Place::dominds(&http(&format!("http://{free}/mcp")));
    check(&place, 3, ("port", "nobody listens there", "start the server"));
    let place = Place::dominds(&http("http://no-such-host.invalid/mcp"));
    check(&place, 3, ("address", "no-such-host.invalid cannot be looked up", "spelling"));
    let place = Place::empty();
    let demo = HttpDemo::start(&place);
    place.write(".minds/mcp.yaml", &http(&demo.url.replace("/mcp", "/nowhere")));
    check(&place, 3, ("handshake", "404", "check the path"));
}

/// A proxy may know names that we do not: it is what has to be there.
#[test]
fn with_a_proxy_the_proxy_is_examined() {
    let place = Place::dominds(&http("http://no-such-host.invalid/mcp"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let run = |place: &Place| {
        let mut command = place.command(&["doctor", "."]);
        command.env("HTTP_PROXY", format!("http://user:hunter2@{proxy}"));
        Run::of(command.output().unwrap())
    };
    // It takes one connection to knock, and does not answer the next.
    let taking = std::thread::spawn(move || listener.incoming().take(3).for_each(drop));
    let there = run(&place);
    assert_eq!(there.code, Some(3), "{there:?}");
    assert!(there.out.contains(&format!("  ✓ proxy          the proxy {proxy} is there")), "{there:?}");
    assert!(there.out.contains("  ✗ handshake ") && !there.out.contains("address"), "{there:?}");
    assert!(!there.out.contains("hunter2"), "{there:?}");
    drop(taking);
}

#[test]
fn one_bad_server_does_not_end_the_examination() {
    let place =
        Place::dominds(&format!("{DEMO}  broken:\n    transport: stdio\n    command: /no/such/program\n"));
    let run = place.run(&["doctor", "."]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(
        run.out.starts_with("✓ demo  stdio  mcp-host\n")
            && run.out.contains("\n✗ broken  there is no file /no/such/program\n  help: "),
        "{run:?}"
    );
    assert_eq!(place.run(&["doctor", ".", "--server", "demo"]).code, Some(0));
    assert_eq!(place.run(&["doctor", ".", "--server", "other"]).code, Some(2));
}
