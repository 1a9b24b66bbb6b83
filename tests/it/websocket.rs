//! WebSocket, with real servers: lists and results equal those over stdio.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use mcp_host_runtime::{Host, HostOptions, LoadRequest, load};
use mcp_testkit::program::{Run, installed_folder, root};

use crate::compare::{EVERYTHING, check_change, check_same, demo, holodeck, over_stdio, start};

#[test]
fn hd_123_hd_fr006_a_real_server_behind_a_gateway() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let everything =
        modules.join("@modelcontextprotocol/server-everything/dist/index.js").display().to_string();
    let gateway = modules.join("supergateway/dist/index.js");
    let (_server, port) = start(|port| {
        let mut command = Command::new("node");
        command.arg(&gateway).args(["--stdio", &format!("node {everything} stdio")]);
        command.args(["--outputTransport", "ws", "--messagePath", "/message", "--port", &port.to_string()]);
        command
    });
    let folder = tempfile::tempdir().unwrap();
    let websocket = holodeck(folder.path(), "websocket", &format!("ws://127.0.0.1:{port}/message"));
    let stdio = over_stdio(folder.path(), &["node", &everything, "stdio"]);
    check_same(&websocket, &stdio, &EVERYTHING);
}

#[test]
fn hd_123_hd_124_a_real_server_of_the_python_sdk() {
    let Some(venv) = installed_folder("MCP_HOST_VENV_MCP1") else { return };
    let python = venv.join("bin/python").display().to_string();
    let script = root().join("tests/python/mcp1_server.py").display().to_string();
    let (_server, port) = start(|port| {
        let mut command = Command::new(&python);
        command.args([&script, &port.to_string()]);
        command
    });
    let folder = tempfile::tempdir().unwrap();
    let websocket = holodeck(folder.path(), "websocket", &format!("ws://127.0.0.1:{port}/"));
    let stdio = over_stdio(folder.path(), &[&python, &script, "stdio"]);
    let long = format!(r#"{{"message":"{}","times":3}}"#, "grün ".repeat(20_000));
    check_same(
        &websocket,
        &stdio,
        &[
            ("it__echo", r#"{"message":"hello, \u4e16\u754c"}"#),
            ("it__repeat", &long),
            ("it__fail", "{}"),
            ("it__repeat", r#"{"message":1,"times":"no number"}"#),
        ],
    );
}

#[tokio::test]
async fn hd_115_hd_fr016_a_changed_list_makes_a_generation_over_websocket() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.starts_with("ws://"));
    let file = holodeck(folder.path(), "websocket", &url);
    let host = Host::start(HostOptions::default());
    host.apply(load(&LoadRequest::new(file)).unwrap().desired).await;
    check_change(host).await;
}

#[test]
fn the_environment_proxy_opens_a_tunnel() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.starts_with("ws://"));
    let address = url.strip_prefix("ws://").unwrap().strip_suffix("/ws").unwrap().to_owned();
    let proxy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let variable = format!("http://user:pa%20ss@{}", proxy.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut client, _) = proxy.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        client.write_all(b"HTTP/1.0 200 Connection established\r\n\r\n").unwrap();
        let mut server = TcpStream::connect(address).unwrap();
        let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let back = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(std::net::Shutdown::Both);
        });
        let _ = std::io::copy(&mut client, &mut server);
        let _ = server.shutdown(std::net::Shutdown::Both);
        back.join().unwrap();
        String::from_utf8(head).unwrap()
    });
    let file = holodeck(folder.path(), "websocket", "ws://mcp.example/ws").display().to_string();
    let run = Run::new(folder.path(), folder.path(), &["tools", &file, "--format", "json"]);
    let ran = run.env("HTTP_PROXY", &variable).env("NO_PROXY", "").finish();
    // The demo server rejects `mcp.example`, so it was reached.
    let error = ran.json()["servers"][0]["error"].to_string();
    assert!(error.contains("HTTP 403") && error.contains("for this machine only"), "{ran:#?}");
    let head = asked.join().unwrap();
    let want = "CONNECT mcp.example:80 HTTP/1.1\r\nHost: mcp.example:80\r\n\
        Proxy-Authorization: Basic dXNlcjpwYSBzcw==\r\n\r\n";
    assert_eq!(head, want);
}

#[test]
fn the_environment_socks_proxy_is_used_by_every_network_transport() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.starts_with("ws://"));
    let address = url.strip_prefix("ws://").unwrap().strip_suffix("/ws").unwrap().to_owned();
    let proxy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let variable = format!("socks5h://{}", proxy.local_addr().unwrap());
    let (asked, names) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for client in proxy.incoming() {
            let (asked, address) = (asked.clone(), address.clone());
            std::thread::spawn(move || carry(client.unwrap(), &asked, &address));
        }
    });
    for (transport, url) in [
        ("websocket", "ws://mcp.example:81/ws"),
        ("http", "https://mcp.example:81/mcp"),
        ("sse", "https://mcp.example:81/sse"),
    ] {
        let file = holodeck(folder.path(), transport, url).display().to_string();
        let run = Run::new(folder.path(), folder.path(), &["tools", &file, "--format", "json"]);
        let ran = run.env("ALL_PROXY", &variable).env("NO_PROXY", "").finish();
        let error = ran.json()["servers"][0]["error"].to_string();
        // The demo server rejects `mcp.example` and has no TLS, so it was reached.
        let want = if transport == "websocket" { "for this machine only" } else { "does not speak TLS" };
        assert!(error.contains(want), "{transport}: {ran:#?}");
        assert_eq!(names.recv().unwrap(), b"\x0bmcp.example\x00\x51", "{transport}");
        while names.try_recv().is_ok() {}
    }
}

/// A SOCKS proxy for one client: it reports the requested name and connects to the one server.
fn carry(mut client: TcpStream, asked: &std::sync::mpsc::Sender<Vec<u8>>, address: &str) {
    let mut greeting = [0; 3];
    client.read_exact(&mut greeting).unwrap();
    client.write_all(b"\x05\x00").unwrap();
    let mut place = [0; 18];
    client.read_exact(&mut place).unwrap();
    asked.send(place[4..].to_vec()).unwrap();
    client.write_all(b"\x05\x00\x00\x01\0\0\0\0\0\0").unwrap();
    let mut server = TcpStream::connect(address).unwrap();
    let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(std::net::Shutdown::Both);
}
