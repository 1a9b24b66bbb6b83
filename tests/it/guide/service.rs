//! The files of the page about the service, tried with the programs that read them. A program that is not installed is
//! skipped; what the gateway itself must have is checked always.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use mcp_testkit::program::Run;
use mcp_testkit::wait::block_until;

use super::page::{Block, blocks};
use super::text;

const PAGE: &str = "recipes/service.md";
const TOKEN: &str = "ann-0123456789abcdef";

/// Programs that end with the test.
#[derive(Default)]
struct Programs(Vec<Child>);

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A file of the page.
fn file(name: &str) -> String {
    let found = blocks(PAGE, &text(PAGE)).into_iter().find_map(|block| match block {
        Block::File { path, text } if path == name => Some(text),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{PAGE} has no file {name}"))
}

/// Runs a program; `None` if it is not installed.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Option<Output> {
    Command::new(program).args(arguments).current_dir(folder).output().ok()
}

/// Expects that a program accepts its file.
#[track_caller]
fn check_accepted(name: &str, program: &str, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), file(name)).unwrap();
    let Some(output) = run(program, arguments, folder.path()) else { return };
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {printed}");
}

// RPT-208
#[test]
fn unit_log_rotation_and_alerts_are_accepted_by_their_programs() {
    check_accepted("mcp-host.service", "systemd-analyze", &["verify", "--man=no", "./mcp-host.service"]);
    check_accepted("logrotate", "logrotate", &["--debug", "--state", "state", "logrotate"]);
    check_accepted("alerts.yml", "promtool", &["check", "rules", "alerts.yml"]);
    let unit = file("mcp-host.service");
    for line in ["ExecReload=/bin/kill -HUP $MAINPID", "Restart=on-failure"] {
        assert!(unit.lines().any(|found| found == line), "{unit}");
    }
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    assert!(stop.parse::<u64>().unwrap() >= 5 + 15, "{stop}");
    assert!(file("logrotate").contains("systemctl reload mcp-host.service"));
}

/// The names of metrics in the expressions of the alerts.
fn metrics_of_alerts() -> Vec<String> {
    let rules = file("alerts.yml");
    let words = rules.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let is_metric = |word: &&str| word.starts_with("mcp_") || word.starts_with("process_");
    words.filter(is_metric).map(str::to_owned).collect()
}

// RPT-208
#[test]
fn proxy_of_the_page_passes_calls_on_and_alerts_name_real_metrics() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("mcp.json", r#"{"mcpServers":{"demo":{"command":"mcp-host","args":["demo-server"]}}}"#);
    write("tokens", &format!("{TOKEN} name=ann expires=2100-01-01\n"));
    // The options of the unit, with files of this folder.
    let unit = file("mcp-host.service").replace("\\\n", " ");
    let command =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/env mcp-host ")).unwrap();
    let command = command.replace("/etc/mcp-host/", "").replace("/var/log/mcp-host/", "");
    let arguments: Vec<&str> = command.split_whitespace().collect();
    let address = arguments[arguments.iter().position(|word| *word == "--http").unwrap() + 1];
    let mut programs = Programs::default();
    programs.0.push(Run::new(folder.path(), state.path(), &arguments).start());
    block_until(|| std::net::TcpStream::connect(address).is_ok());

    let nginx = file("nginx.conf");
    assert!(nginx.contains(&format!("server {address};")), "{nginx}");
    // The folders of an installed nginx may be missing.
    let own_folders = "http {\n    access_log off;\n    client_body_temp_path body;\n    proxy_temp_path proxy;\n    \
                       fastcgi_temp_path fastcgi;\n    uwsgi_temp_path uwsgi;\n    scgi_temp_path scgi;";
    write("nginx.conf", &nginx.replacen("http {", own_folders, 1));
    let path = folder.path().display().to_string();
    let configuration = format!("{path}/nginx.conf");
    let common = ["-e", "stderr", "-p", &path, "-c", &configuration];
    let test = run("nginx", &[&common[..], &["-t", "-g", "pid nginx.pid;"]].concat(), folder.path());
    let front = match test {
        Some(test) => {
            assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stderr));
            // Workers would survive a killed master process.
            let one_process = ["-g", "daemon off; master_process off; pid nginx.pid;"];
            let options = [&common[..], &one_process].concat();
            programs.0.push(Command::new("nginx").args(options).stdout(Stdio::null()).spawn().unwrap());
            let listen = nginx.lines().find_map(|line| line.trim().strip_prefix("listen ")).unwrap();
            let listen = listen.trim_end_matches(';');
            block_until(|| std::net::TcpStream::connect(listen).is_ok());
            listen.to_owned()
        }
        None => address.to_owned(),
    };
    let client = format!(
        r#"{{"mcpServers":{{"gw":{{"type":"http","url":"http://{front}/mcp","headers":{{"Authorization":"Bearer {TOKEN}","X-Forwarded-For":"192.0.2.1"}}}}}}}}"#
    );
    write("client.json", &client);
    let called =
        Run::new(folder.path(), state.path(), &["call", "client.json", "gw__demo__echo", "text=hello"]);
    let called = called.finish();
    assert!(called.code == Some(0) && called.stdout.contains("hello"), "{}{}", called.stdout, called.stderr);
    // nginx appends the address of its client, which is this machine and so a trusted proxy itself.
    block_until(|| {
        let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap_or_default();
        audit.contains(r#""address":"192.0.2.1","token":"ann","token_line":1"#)
    });

    let page = get_metrics(address);
    for name in metrics_of_alerts() {
        // The page has no certificate without TLS; tls.rs of mcp-gateway checks that metric.
        let is_real = name == "mcp_gateway_certificate_expiry_timestamp_seconds"
            || page.contains(&format!("# TYPE {name} "));
        assert!(is_real, "no metric has the name {name}: {page}");
    }
}

/// Gets the page of metrics from the gateway itself.
fn get_metrics(address: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}
