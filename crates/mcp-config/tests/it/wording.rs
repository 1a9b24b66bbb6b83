//! Snapshots of every diagnostic as rendered for users.

use std::collections::BTreeSet;

use mcp_host_config::{Code, Colour, Profile, ResolveContext, render, resolve};

use crate::read_text;

/// At least one text for each code: profile, label, text.
const DIAGNOSTIC_TEXTS: &[(Profile, &str, &str)] = &[
    (Profile::Dominds, "syntax-tab", "version: 1\nservers:\n\ta: 1\n"),
    (Profile::Dominds, "syntax-quote", "version: 1\nservers:\n  a: \"x\n"),
    (Profile::Dominds, "syntax-bracket", "version: 1\nservers: {a: [x\n"),
    (Profile::Dominds, "syntax-colon", "version: 1\nservers:\n  a: b: c\n"),
    (Profile::Dominds, "syntax-character", "version: 1\nservers:\n  a: @b\n"),
    (Profile::Dominds, "syntax-alias", "version: 1\nservers:\n  a: *b\n"),
    (Profile::Dominds, "syntax-tag", "version: !!int x\n"),
    (
        Profile::Dominds,
        "duplicate-key",
        "version: 1\nservers:\n  a: {transport: stdio, command: x}\n  a: {}\n",
    ),
    (
        Profile::HoloDeck,
        "too-large",
        "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
    ),
    (Profile::Dominds, "many-documents", "version: 1\n---\nversion: 1\n"),
    (Profile::HoloDeck, "unknown-tag", "tools: !!python/object:os.system []\n"),
    (Profile::Dominds, "bad-key-list", "version: 1\nservers:\n  ? [a]\n  : {}\n"),
    (
        Profile::HoloDeck,
        "bad-key-number",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, env: {1: x}}\n",
    ),
    (Profile::HoloDeck, "wrong-type-root", "- a\n"),
    (Profile::HoloDeck, "wrong-type-tools", "tools: {a: b}\n"),
    (Profile::HoloDeck, "wrong-type-tool", "tools: [x]\n"),
    (Profile::HoloDeck, "wrong-type-tag", "tools: [{type: 5}]\n"),
    (
        Profile::HoloDeck,
        "wrong-type-fields",
        "tools:\n  - name: 5\n    description: ~\n    type: mcp\n    server: s\n    command: npx\n    args: -y\n    \
         env: [A]\n    timeout: \"30\"\n    load_tools: no\n    request_timeout: 60.5\n    config: x\n",
    ),
    (
        Profile::HoloDeck,
        "wrong-type-item",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, args: [a, 1], config: {a: .inf}}\n",
    ),
    (Profile::Dominds, "wrong-type-dominds-root", ""),
    (Profile::Dominds, "wrong-type-dominds-servers", "version: 1\nservers: []\n"),
    (
        Profile::Dominds,
        "wrong-type-dominds-fields",
        "version: 1\nservers:\n  a:\n    transport: stdio\n    command: [x]\n    args: {}\n    env: {A: 1, B: ~}\n    \
         truely-stateless: yes\n    tools: ~\n    transform: [{prefix: 1}, a]\n    resources: {maxBytes: 1.5}\n",
    ),
    (Profile::HoloDeck, "missing-key", "tools:\n  - type: mcp\n    command: npx\n  - name: b\n"),
    (Profile::HoloDeck07, "missing-key-0.7", "tools:\n  - {name: a, type: mcp, command: node}\n"),
    (Profile::Dominds, "missing-key-dominds", "version: 1\nservers:\n  a: {command: x}\n"),
    (
        Profile::HoloDeck,
        "empty-value",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, envFile: ''}\n",
    ),
    (
        Profile::Dominds,
        "empty-value-dominds",
        "version: 1\nservers:\n  a: {transport: stdio, command: '', env: {A: {env: ''}}}\n",
    ),
    (
        Profile::HoloDeck,
        "unknown-key",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, comand: npx, <<: {}, zzz: 1, is_retrieval: \
        true}\n",
    ),
    (
        Profile::Dominds,
        "unknown-key-dominds",
        "version: 1\nservers:\n  a: {transport: stdio, command: x, truly-stateless: true}\n",
    ),
    (
        Profile::HoloDeck,
        "unknown-word",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: htp}\n  - {name: b, type: MCP}\n",
    ),
    (
        Profile::HoloDeck,
        "unknown-word-far",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: carrier_pigeon}\n",
    ),
    (Profile::Dominds, "unknown-word-dominds", "version: 1\nservers:\n  a: {transport: streamable-http}\n"),
    (
        Profile::HoloDeck,
        "out-of-range",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: sse, url: 'https://x.example', \
        timeout: 0, request_timeout: 0, sse_read_timeout: .nan}\n  - {name: b, description: d, type: mcp, server: s, \
        command: npx, request_timeout: 99999999999999999999}\n",
    ),
    (
        Profile::Dominds,
        "out-of-range-dominds",
        "version: 1\nservers:\n  a: {transport: stdio, command: x, resources: {maxBytes: 0}}\n",
    ),
    (
        Profile::HoloDeck,
        "exclusive",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, envFile: a, env_file: b}\n",
    ),
    (
        Profile::HoloDeck,
        "invalid-name",
        "tools:\n  - {name: '', description: d, type: mcp, server: s, command: npx}\n",
    ),
    (
        Profile::HoloDeck07,
        "invalid-name-0.7",
        "tools:\n  - {name: a-b, description: d, type: mcp, command: npx}\n",
    ),
    (
        Profile::Dominds,
        "invalid-name-dominds",
        "version: 1\nservers:\n  \"a\\nb\": {transport: stdio, command: x}\n",
    ),
    (
        Profile::HoloDeck,
        "duplicate-name",
        "tools:\n  - {name: a, type: function}\n  - {name: a, description: d, type: mcp, server: s, command: npx}\n",
    ),
    (
        Profile::HoloDeck,
        "invalid-command",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx -y x}\n  - {name: b, description: d, \
         type: mcp, server: s, command: /usr/bin/UVX}\n  - {name: c, description: d, type: mcp, server: s, command: \
         node}\n  - {name: d, description: d, type: mcp, server: s, command: rm}\n",
    ),
    (
        Profile::HoloDeck07,
        "invalid-command-0.7",
        "tools:\n  - {name: a, description: d, type: mcp, transport: http, url: 'https://x.example', command: rm}\n",
    ),
    (
        Profile::HoloDeck,
        "missing-command",
        "tools:\n  - {name: a, description: d, type: mcp, server: s}\n  - {name: b, description: d, type: mcp, \
        server: s, url: 'https://x.example'}\n",
    ),
    (Profile::Dominds, "missing-command-dominds", "version: 1\nservers:\n  a:\n    transport: stdio\n"),
    (
        Profile::HoloDeck,
        "missing-url",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: sse}\n  - {name: b, description: d, \
         type: mcp, server: s, transport: websocket}\n  - {name: c, description: d, type: mcp, server: s, transport: \
         http}\n",
    ),
    (Profile::Dominds, "missing-url-dominds", "version: 1\nservers:\n  a:\n    transport: streamable_http\n"),
    (
        Profile::HoloDeck,
        "url-scheme",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: sse, url: 'http://acme.example'}\n  \
         - {name: b, description: d, type: mcp, server: s, transport: websocket, url: 'https://acme.example'}\n",
    ),
    (
        Profile::Dominds,
        "url-scheme-dominds",
        "version: 1\nservers:\n  a: {transport: streamable_http, url: 'ws://acme.example'}\n",
    ),
    (
        Profile::HoloDeck,
        "invalid-url",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: http, url: 'https:///x'}\n",
    ),
    (
        Profile::Dominds,
        "invalid-url-dominds",
        "version: 1\nservers:\n  a: {transport: streamable_http, url: 'http://'}\n",
    ),
    (
        Profile::HoloDeck,
        "foreign-field",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, url: 'https://x.example'}\n  - \
         {name: b, description: d, type: mcp, server: s, transport: http, url: 'https://x.example', command: npx}\n",
    ),
    (
        Profile::HoloDeck,
        "no-effect",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: websocket, url: 'wss://x.example', \
        headers: {A: b}}\n",
    ),
    (
        Profile::Dominds,
        "no-effect-dominds",
        "version: 1\nservers:\n  a: {transport: stdio, command: x, url: 5}\n",
    ),
    (
        Profile::HoloDeck,
        "variable-not-allowed",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: '${X}'}\n",
    ),
    (
        Profile::HoloDeck,
        "unknown-encoding",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, encoding: latin-1}\n  - {name: b, \
        description: d, type: mcp, server: s, command: npx, encoding: utf-16}\n",
    ),
    (
        Profile::HoloDeck,
        "invalid-header",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: http, url: 'https://x.example', \
        headers: {'a b': c, d: \"e\\nf\"}}\n",
    ),
    (
        Profile::HoloDeck,
        "invalid-environment",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, env: {'A=B': c, D: \"\\0\"}, \
        args: [\"\\0\"]}\n",
    ),
    (
        Profile::HoloDeck,
        "empty-server",
        "tools:\n  - {name: a, description: d, type: mcp, server: '', command: npx}\n",
    ),
    (Profile::HoloDeck, "legacy", "tools:\n  - name: a\n    type: mcp\n    server: '@acme/memory'\n"),
    (
        Profile::HoloDeck,
        "suspicious-unit",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: sse, url: 'https://x.example', \
        request_timeout: 30000, timeout: 5000}\n",
    ),
    (
        Profile::HoloDeck,
        "plain-websocket",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: websocket, url: 'ws://acme.example'}\n",
    ),
    (Profile::Dominds, "unsupported-version", "version: 2\n"),
    (Profile::Dominds, "unsupported-version-missing", "servers: {}\n"),
    (
        Profile::Dominds,
        "invalid-transform",
        "version: 1\nservers:\n  a: {transport: stdio, command: x, transform: [{prefix: a, suffix: b}, {}]}\n",
    ),
    (
        Profile::Dominds,
        "empty-session",
        "version: 1\nservers:\n  a: {transport: streamable_http, url: 'http://x.example', sessionId: ''}\n",
    ),
    (
        Profile::HoloDeck,
        "missing-variable",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, env: {A: \
        'x${NOT_SET}y${NOR_THIS}'}}\n",
    ),
    (
        Profile::Dominds,
        "missing-variable-dominds",
        "version: 1\nservers:\n  a: {transport: stdio, command: x, env: {A: {env: NOT_SET}}}\n",
    ),
    (
        Profile::McpJson,
        "syntax-json-comma",
        "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"}\n  \"b\": {}\n}}\n",
    ),
    (
        Profile::McpJson,
        "syntax-json-brace",
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    ,\n    \"b\": {\"command\": \"y\"}\n  \
        }\n}\n",
    ),
    (Profile::McpJson, "syntax-json-quotes", "{“mcpServers”: {}}\n"),
    (Profile::McpJson, "syntax-json-hash", "# servers\n{\"mcpServers\": {}}\n"),
    (
        Profile::Dominds,
        "syntax-several",
        "version: 1\nservers:\n  a:\n    transport:stdio\n    command: npx\n  b: c: d\n  e:\n    command: @f\n  g: \
        'h\n",
    ),
    (Profile::Dominds, "syntax-blank", "version: 1\nservers:\n\u{a0}\u{a0}a:\n    command: npx\n"),
    (
        Profile::Dominds,
        "missing-blank",
        "version: 1\nservers:\n  a:\n    transport:stdio\n  b: {command:npx}\n",
    ),
    (
        Profile::Dominds,
        "literal-variable-dominds",
        "version: 1\nservers:\n  a:\n    transport: stdio\n    command: 'npx '\n    args: ['-y server', '${X}']\n    \
        env: {A: '${TOKEN}'}\n  b: {transport: streamable_http, url: 'https://a.example/${X}', sessionId: ' ', \
        headers: {A: 'Bearer ${X}'}}\n",
    ),
    (
        Profile::HoloDeck07,
        "silent-holodeck",
        "tools:\n  - {name: a, description: d, type: mcp, command: npx, url: 'ftp://a.example', config: {1: 2}}\n  - \
        {name: b, description: d, type: mcp, command: 'npx ', args: ['${A', '${env:B}'], env: {C: '${ D }'}}\n",
    ),
    (
        Profile::McpJson,
        "silent-mcp-json",
        "{\"mcpServers\": {\n  \"a\": {\"command\": \"docker run -i\", \"args\": [\"image\", \"-e A\"]},\n  \"b\": \
        {\"command\": \"npx \", \"env\": {\"A\": 1, \"B\": true, \"C\": null, \"D\": \"${E\"}},\n  \"c\": \
        {\"command\": \"x\", \"env\": [\"A=b\"]}\n}}\n",
    ),
    (
        Profile::McpJson,
        "other-keys",
        "{\"mcpServers\": {\n  \"a\": {\"url\": \"https://a.example\", \"requestInit\": {}, \"headersHelper\": \
        \"x\", \"protocol\": \"sse\", \"title\": \"A\"},\n  \"b\": {\"command\": \"x\", \"working_directory\": \
        \"/\"},\n  \"c\": {\"transport\": {\"type\": \"http\", \"url\": \"https://a.example\"}}\n}}\n",
    ),
    (
        Profile::AcpV1,
        "odd-name-acp",
        "[{\"name\": \"a\\tb\", \"command\": \"/bin/npx -y x\", \"args\": [], \"env\": []}]\n",
    ),
    (Profile::AcpV1, "syntax-json-comment", "[\n  // one\n]\n"),
    (Profile::McpJson, "no-servers", "{\"tools\": [\"a\"]}\n"),
    (Profile::McpJson, "no-servers-alone", "{\"command\": \"npx\"}\n"),
    (Profile::McpJson, "no-servers-empty", "\n"),
    (Profile::AcpV1, "no-servers-acp", "{\"jsonrpc\": \"2.0\", \"id\": 1}\n"),
    (Profile::McpJson, "nothing-to-start", "{\"context_servers\": {\"a\": {\"settings\": {\"b\": 1}}}}\n"),
    (
        Profile::McpJson,
        "command-line",
        "{\"mcpServers\": {\n  \"a\": {\"command\": \"npx -y server\"},\n  \"b\": {\"command\": \"/bin/npx -y \
        server\"}\n}}\n",
    ),
    (
        Profile::McpJson,
        "missing-input",
        "{\"inputs\": [{\"id\": \"api-key\"}],\n \"servers\": {\"a\": {\"command\": \"x\", \"args\": \
        [\"${input:api-kee}\", \"${input:api-key}\"]}}}\n",
    ),
    (
        Profile::McpJson,
        "unknown-reference",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n  \"args\": [\"${command:y}\"],\n  \"env\": {\"A\": \"Bearer \
        $TOKEN\"}}}}\n",
    ),
    (
        Profile::AcpV1,
        "repeated-name",
        "[{\"name\": \"a\", \"command\": \"/x\", \"args\": [],\n  \"env\": [{\"name\": \"A\", \"value\": \"1\"}, \
        {\"name\": \"A\", \"value\": \"2\"}]}]\n",
    ),
    (
        Profile::AcpV1,
        "relative-path",
        "{\"method\": \"session/new\", \"params\": {\"cwd\": \"x\", \"mcpServers\": [\n  {\"name\": \"a\", \
        \"command\": \"npx\", \"args\": [], \"env\": []}]}}\n",
    ),
    (
        Profile::AcpV2,
        "extension",
        "[{\"type\": \"_pigeon\", \"name\": \"a\"}, {\"type\": \"acp\", \"name\": \"b\", \"serverId\": \"1\"}]\n",
    ),
    (
        Profile::AcpV2,
        "unknown-transport-acp",
        "[{\"type\": \"sse\", \"name\": \"a\"}, {\"type\": \"htpp\", \"name\": \"b\"}, {\"name\": \"c\"}]\n",
    ),
    (
        Profile::AcpV1,
        "owned-headers",
        "[{\"type\": \"http\", \"name\": \"a\", \"url\": \"https://a.example\",\n  \"headers\": [{\"name\": \
        \"Accept\", \"value\": \"x\"}, {\"name\": \"host\", \"value\": \"x\"}]}]\n",
    ),
    (
        Profile::AcpV1,
        "empty-values-acp",
        "[{\"name\": \"\", \"command\": \"\", \"args\": [], \"env\": [{\"name\": \"\", \"value\": \"\"}]},\n \
        {\"type\": \"http\", \"name\": \"a\", \"url\": \"\", \"headers\": [{\"name\": \"\", \"value\": \"\"}]},\n \
        {\"type\": \"sse\", \"name\": \"b\", \"url\": \"ws://x\"}]\n",
    ),
    (
        Profile::McpJson,
        "suspicious-unit-mcp-json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"timeout\": 1800, \"requestTimeout\": 0}}}\n",
    ),
    (
        Profile::McpJson,
        "wrong-type-mcp-json",
        "{\"mcpServers\": {\n  \"a\": {\"command\": 5, \"env\": \"A=b\", \"disabled\": \"no\", \"timeout\": \
        \"30s\"},\n  \"b\": [],\n  \"c\": {\"colour\": 1, \"commnad\": \"x\"},\n  \"d\": {\"command\": \"x\", \
        \"url\": \"https://a.example\"}\n}}\n",
    ),
    (
        Profile::McpJson,
        "disabled-server",
        "{\"mcpServers\": {\"a\": {\"httpUrl\": \"https://a.example\"}, \"b\": {\"command\": \"x\"}},\n \"mcp\": \
        {\"excluded\": [\"a\"], \"allowed\": [\"a\"]}}\n",
    ),
    (
        Profile::HoloDeck,
        "unreadable-env-file",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, envFile: .env}\n",
    ),
    (
        Profile::McpJson,
        "secret",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"--key=${secret:KEY}\"],\n \
        \"env\": {\"T\": \"Bearer ${secret:KEY}\"}}}}\n",
    ),
];

#[test]
fn every_diagnostic_matches_its_snapshot() {
    let context = ResolveContext::new(&|_| None, std::path::Path::new("/w"), &|_| {
        Err("there is no such file".to_owned())
    });
    let mut codes = BTreeSet::new();
    for (profile, label, text) in DIAGNOSTIC_TEXTS {
        let reading = read_text(*profile, text);
        let mut diagnostics = reading.diagnostics.clone();
        for server in reading.servers.iter().filter(|_| !reading.refused) {
            let errors = resolve(server, &context).err().into_iter().flatten();
            diagnostics.extend(errors.map(|it| reading.diagnose(&it)));
        }
        codes.extend(diagnostics.iter().map(|it| it.code));
        assert!(diagnostics.iter().all(|it| it.help.is_some()), "{label}: a diagnostic has no help");
        insta::assert_snapshot!(*label, render("config.yaml", text, &diagnostics, Colour::Never));
    }
    let unshown: Vec<_> = Code::ALL.iter().filter(|it| !codes.contains(it)).collect();
    assert!(unshown.is_empty(), "no row shows {unshown:?}");
}
