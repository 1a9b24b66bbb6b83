//! The examples in the `--help` of each command.
//!
//! A test runs all of them, in a folder with a `.minds/mcp.yaml` whose server is the demo server, and a `request.json` with
//! an ACP request. An example must fit into one line of the help.

pub(crate) const CHECK: &str = "\
Examples:
  mcp-host check
  mcp-host check .minds/mcp.yaml --format github
  mcp-host check . --fix
  mcp-host check - < .minds/mcp.yaml";

pub(crate) const CONVERT: &str = "\
Examples:
  mcp-host convert . --to mcp-json
  mcp-host convert . --to mcp-json --output .mcp.json";

pub(crate) const ADD: &str = "\
Examples:
  mcp-host add . everything --npm @modelcontextprotocol/server-everything
  mcp-host add . git --pypi mcp-server-git
  mcp-host add .vscode/mcp.json --url https://mcp.example.com --header 'X-Key=${KEY}'
  mcp-host add .mcp.json mine --command ./server --env 'KEY=${KEY}' --args --port 8080";

pub(crate) const IMPORT: &str = "\
Examples:
  mcp-host import
  mcp-host import --format json";

pub(crate) const REMOVE: &str = "\
Examples:
  mcp-host remove . demo --dry-run
  mcp-host remove . demo";

pub(crate) const ENABLE: &str = "\
Examples:
  mcp-host enable . demo";

pub(crate) const DISABLE: &str = "\
Examples:
  mcp-host disable . demo --dry-run
  mcp-host disable . demo";

pub(crate) const TOOLS: &str = "\
Examples:
  mcp-host tools
  mcp-host tools . --tree
  mcp-host tools . --server demo --format json
  mcp-host tools . --schema add
  mcp-host tools . --for anthropic --format json";

pub(crate) const PROMPTS: &str = "\
Examples:
  mcp-host prompts .";

pub(crate) const RESOURCES: &str = "\
Examples:
  mcp-host resources . --server demo";

pub(crate) const DOCTOR: &str = "\
Examples:
  mcp-host doctor
  mcp-host doctor . --server demo
  mcp-host doctor . --format json";

pub(crate) const EXPLAIN: &str = "\
Examples:
  mcp-host explain . --server demo --tool echo --tool a.b
  mcp-host explain . --server demo --start";

pub(crate) const CALL: &str = "\
Examples:
  mcp-host call . add a=2 b=3
  mcp-host call . add '{\"a\": 2, \"b\": 3}' --format json
  echo '{\"text\": \"hello\"}' | mcp-host call . echo -
  mcp-host call . mixed --save pictures
  mcp-host call . log -v";

pub(crate) const WATCH: &str = "\
Examples:
  mcp-host watch .
  mcp-host watch . --format json";

pub(crate) const SCHEMA: &str = "\
Examples:
  mcp-host schema dominds
  mcp-host schema mcp-json > mcp.schema.json";

pub(crate) const ACP_CHECK: &str = "\
Examples:
  mcp-host acp-check --capabilities '{\"http\": true}' < request.json";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  mcp-host completions bash > mcp-host.bash
  mcp-host completions zsh > _mcp-host
  mcp-host completions fish > mcp-host.fish";

pub(crate) const MAN: &str = "\
Examples:
  mcp-host man > mcp-host.1";

pub(crate) const DEMO_SERVER: &str = "\
Examples:
  mcp-host demo-server < /dev/null
  mcp-host demo-server --http 127.0.0.1:0";

pub(crate) const SHELL: &str = "\
Examples:
  echo tools | mcp-host shell .
  echo 'add a=2 b=3' | mcp-host shell .";

pub(crate) const RECORD: &str = "\
Examples:
  mcp-host record . -o session.jsonl --call echo text=hello
  mcp-host record -o server.jsonl -- mcp-host demo-server < /dev/null";

pub(crate) const REPLAY: &str = "\
Examples:
  mcp-host record . -o it.jsonl && mcp-host replay it.jsonl < /dev/null";

pub(crate) const LOGIN: &str = "\
Examples:
  mcp-host login demo
  mcp-host login demo .minds/mcp.yaml --no-browser";

pub(crate) const LOCK: &str = "\
Examples:
  mcp-host lock .
  mcp-host lock . && mcp-host lock . --check
  mcp-host lock . && mcp-host lock . --update demo/echo
  mcp-host lock . && mcp-host tools . --locked";

pub(crate) const LOGOUT: &str = "\
Examples:
  mcp-host logout demo";

pub(crate) const SERVE: &str = "\
Examples:
  mcp-host serve . --stdio < /dev/null
  mcp-host serve . --http 127.0.0.1:0";
