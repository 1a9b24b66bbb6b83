//! Hostile sources: a configuration, a program on a pipe, and an HTTP server, with control sequences in every text.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use mcp_testkit::program::{ProgramOutput, binary};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Text with every kind of control sequence and a fake output line, in JSON notation.
pub(super) const RUDE: &str = "x\\u001b[2J\\u001b]0;owned\\u0007\\u001b]8;;http://e.example\\u001b\\\\y\\u001b]52;c;aGk=\\u0007\\u009b5m\
\\u009d0;x\\u009c\\u202e\\u2066\\u200b\\u2060\\ufeff\\u061c\\u0085\\u2028\\b\\b\\u0000\\nSPOOF\\r\\u007f";

/// The beginning of a fake output line.
pub(super) const SPOOF: &str = "SPOOF";

/// The same text without JSON notation.
pub(super) fn unescaped(text: &str) -> String {
    serde_json::from_str(&format!("\"{text}\"")).unwrap()
}

const PROGRAM: &str = r#"#!/bin/sh
rude='@RUDE@'
long=$(printf '%20000s' x | tr ' ' 'L')
answer() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
say() { printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/'"$1"'","params":'"$2"'}'; }
printf '\033]0;owned\007\033[2J\nSPOOF\r\302\233 \342\200\256\n' >&2
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  token=$(printf %s "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{}},"serverInfo":{"name":"'"$rude"'","title":"'"$rude"'","version":"'"$rude"'"},"instructions":"'"$rude"'"}' ;;
  *'"tools/list"'*) answer '{"tools":[{"name":"t","title":"'"$rude"'","description":"'"$rude$long"'","inputSchema":{"type":"object","properties":{"'"$rude"'":{"type":"string","description":"'"$rude"'"}}}},{"name":"errs","inputSchema":{"type":"object"}},{"name":"dies","inputSchema":{"type":"object"}},{"name":"'"$rude"'","inputSchema":{"type":"object"}},{"name":"'"$rude"'2","inputSchema":"'"$rude"'"}]}' ;;
  *'"prompts/list"'*) answer '{"prompts":[{"name":"p","title":"'"$rude"'","description":"'"$rude"'"},{"name":"'"$rude"'","arguments":[{"name":"'"$rude"'","description":"'"$rude"'"}]}]}' ;;
  *'"prompts/get"'*) answer '{"description":"'"$rude"'","messages":[{"role":"user","content":{"type":"text","text":"'"$rude"'"}}]}' ;;
  *'"resources/list"'*) answer '{"resources":[{"uri":"a://b","name":"'"$rude"'","title":"'"$rude"'","description":"'"$rude"'","mimeType":"'"$rude"'"},{"uri":"a://'"$rude"'","name":"n"}]}' ;;
  *'"resources/read"'*) answer '{"contents":[{"uri":"a://'"$rude"'","mimeType":"'"$rude"'","text":"'"$rude"'"}]}' ;;
  *'"tools/call"'*'"errs"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32000,"message":"'"$rude"'","data":{"'"$rude"'":"'"$rude"'"}}}' ;;
  *'"tools/call"'*'"dies"'*) printf '\033]0;owned\007\033[2J\nSPOOF\r\302\233 \342\200\256\n' >&2; exit 3 ;;
  *'"tools/call"'*)
    say message '{"level":"error","logger":"'"$rude"'","data":{"'"$rude"'":"'"$rude"'"}}'
    [ -n "$token" ] && say progress '{"progressToken":'"$token"',"progress":1,"message":"'"$rude"'"}'
    answer '{"isError":true,"content":[{"type":"text","text":"'"$rude"'"},{"type":"image","data":"AAAA","mimeType":"'"$rude"'"},{"type":"resource_link","uri":"a://'"$rude"'","name":"'"$rude"'"}],"structuredContent":{"'"$rude"'":"'"$rude"'"}}' ;;
  *'"method":"notifications/'*) ;;
  *) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"'"$rude"'"}}' ;;
  esac
done
"#;

/// The responses of the HTTP server, by the first segment of the path.
const WEBS: [&str; 6] = ["reason", "body", "auth", "rpc", "location", "header"];

pub(super) struct HostileSources {
    folder: TempDir,
}

impl HostileSources {
    pub(super) async fn new() -> HostileSources {
        let folder = tempfile::tempdir().unwrap();
        let port = serve().await;
        let res = HostileSources { folder };
        res.script("rude", &PROGRAM.replace("@RUDE@", RUDE));
        res.script(
            "dies",
            "#!/bin/sh\nprintf '\\033]0;owned\\007\\033[2J\\nSPOOF\\r\\302\\233' >&2; exit 1\n",
        );
        let webs = WEBS
            .map(|it| format!(r#""web-{it}": {{"type": "http", "url": "http://127.0.0.1:{port}/{it}"}}"#));
        let text = format!(
            r#"{{"mcpServers": {{
  "sound": {{"command": "rude"}},
  "dead": {{"command": "dies"}},
  "{RUDE}": {{"command": "rude", "args": ["{RUDE}"], "env": {{"{RUDE}": "{RUDE}"}}}},
  "far": {{"type": "http", "url": "http://127.0.0.1:9/{RUDE}", "headers": {{"{RUDE}": "{RUDE}"}}}},
  {}
}}}}"#,
            webs.join(",\n  ")
        );
        res.write("mcp.json", &text);
        let wrong = format!(
            r#"{{"mcpServers": {{"odd": {{"comand": "{RUDE}", "{RUDE}": 1, "args": "{RUDE}", "cwd": "/no/{RUDE}"}}}}}}"#
        );
        res.write("wrong.json", &wrong);
        res
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.write(&format!("bin/{name}"), text);
        let path = self.folder.path().join("bin").join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file with a hostile name and content.
    pub(super) fn rude_file(&self) -> String {
        let name = "x\u{1b}[2J\u{202e}\u{9b}5m\nSPOOF.json";
        self.write(name, r#"{"mcpServers": {"a": {"comand": "x"}, "b": {"command": "no-such-program"}}}"#);
        name.to_owned()
    }

    /// A folder with a hostile name and a configuration.
    pub(super) fn rude_folder(&self) -> String {
        let name = "d\u{1b}[2J\u{202e}\u{9b}5m\nSPOOF";
        self.write(&format!("{name}/.mcp.json"), r#"{"mcpServers": {"b": {"command": "no-such-program"}}}"#);
        name.to_owned()
    }

    /// Runs a program in this folder, with these programs and the system's on `PATH`.
    pub(super) fn surround(&self, command: &mut Command) {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display());
        command.current_dir(self.folder.path()).env_clear().env("PATH", path).env("HOME", self.folder.path());
        command.env("XDG_STATE_HOME", self.folder.path().join("state"));
    }

    pub(super) async fn run(&self, arguments: &[&str], input: &str) -> ProgramOutput {
        let mut command = Command::new(binary());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.surround(&mut command);
        let input = input.to_owned();
        let run = move || {
            let mut child = command.spawn().unwrap();
            // A program that does not read may have exited.
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
            let output = child.wait_with_output().unwrap();
            let text = |it: Vec<u8>| String::from_utf8(it).unwrap();
            ProgramOutput {
                code: output.status.code(),
                stdout: text(output.stdout),
                stderr: text(output.stderr),
            }
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }
}

/// Responds to each request by its path. The tasks end with the test's runtime.
async fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = vec![0; 64 << 10];
                let len = socket.read(&mut read).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&read[..len]).into_owned();
                let mode = request.split(['/', ' ']).nth(2).unwrap_or_default().to_owned();
                let _ = socket.write_all(&answer(&mode)).await;
                let _ = socket.shutdown().await;
            });
        }
    });
    port
}

fn answer(mode: &str) -> Vec<u8> {
    let rude = unescaped(RUDE);
    // Allowed in a header: no C0 control character.
    let tame: String = rude.chars().filter(|it| *it >= ' ' && *it != '\u{7f}').collect();
    let (status, header, body) = match mode {
        "reason" => (format!("500 {tame}"), String::new(), String::new()),
        "auth" => {
            let said =
                format!("WWW-Authenticate: Bearer error=\"{tame}SPOOF\", error_description=\"{tame}\"\r\n");
            ("401 no".to_owned(), said, rude)
        }
        "rpc" => {
            let error =
                format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32000,"message":"{RUDE}"}}}}"#);
            ("400 no".to_owned(), "Content-Type: application/json\r\n".to_owned(), error)
        }
        "location" => ("302 no".to_owned(), format!("Location: http://h.example/{tame}\r\n"), String::new()),
        // Not allowed in a header.
        "header" => ("200 ok".to_owned(), "Content-Type: text/\u{1b}[2J\u{202e}\r\n".to_owned(), rude),
        _ => ("404 no".to_owned(), String::new(), rude),
    };
    format!("HTTP/1.1 {status}\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}
