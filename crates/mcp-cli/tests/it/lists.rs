//! `prompts`, `resources`, and the views of `tools`.

use crate::support::{DEMO, Workspace};

#[test]
fn hd_113_prompts_are_listed_with_their_arguments() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["prompts", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.out, @r"
    PROMPT     SERVER  ARGUMENTS      DESCRIPTION
    hello      demo    -              Says hello to the model
    summarise  demo    text, [words]  Asks for a summary of a text

    ✓ demo  ready (modern)
    ");
    let document = workspace.run(&["prompts", ".", "--format", "json"]).json();
    assert_eq!(document["prompts"][1]["original_name"], "summarise");
    assert_eq!(
        document["prompts"][1]["arguments"][0],
        serde_json::json!({"name": "text", "description": "What to summarise", "required": true})
    );
    assert_eq!(document["servers"][0]["state"], "ready");
    assert_eq!(
        (&document["problems"], &document["tools"]),
        (&serde_json::json!([]), &serde_json::Value::Null)
    );
}

#[test]
fn resources_and_their_templates_are_listed() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["resources", "."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.out, @r"
    URI              SERVER  NAME      DESCRIPTION
    demo://greeting  demo    greeting  A line of text
    demo://picture   demo    picture   Four pixels
    demo://sound     demo    sound     Ten milliseconds of sound

    URI TEMPLATE            SERVER  NAME     DESCRIPTION
    demo://numbers/{count}  demo    numbers  The numbers from 1 to count, one a line; count is 1 to 1000

    ✓ demo  ready (modern)
    ");
    let document = workspace.run(&["resources", ".", "--server", "demo", "--format", "json"]).json();
    assert_eq!(document["resources"][0]["uri"], "demo://greeting");
    assert_eq!(document["templates"][0]["uri_template"], "demo://numbers/{count}");
}

#[test]
fn tree_groups_tools_by_server() {
    let workspace = Workspace::dominds(&format!(
        "{DEMO}  broken:\n    transport: stdio\n    command: /no/such/program\n"
    ));
    let run = workspace.run(&["tools", ".", "--tree"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.starts_with("✓ demo  ready (modern)\n├─ echo "), "{run:?}");
    assert!(run.out.contains("\n✗ broken  failed  MCPConnectionError: "), "{run:?}");
    assert_eq!(run.out.matches("✓ demo").count(), 1, "{run:?}");
}

#[test]
fn dm_063_tools_are_adapted_to_a_provider() {
    let workspace = Workspace::dominds(DEMO);
    let tools = |provider: &str| {
        let run = workspace.run(&["tools", ".", "--for", provider, "--format", "json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        run.json()
    };
    let anthropic = tools("anthropic");
    let add = &anthropic.as_array().unwrap().iter().find(|tool| tool["name"] == "add").unwrap();
    assert_eq!(add["input_schema"]["type"], "object");
    let gemini = tools("gemini");
    assert_eq!(gemini.as_array().unwrap().len(), 1, "one item declares all functions");
    assert!(gemini[0]["functionDeclarations"].as_array().unwrap().iter().any(|tool| tool["name"] == "add"));
    let openai = tools("openai");
    let add = openai.as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "add").unwrap();
    assert_eq!(add["function"]["strict"], true);
    assert_eq!(add["function"]["parameters"]["additionalProperties"], false);
    let sleep = openai.as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "sleep").unwrap();
    assert_eq!(sleep["function"]["strict"], false, "an argument is optional: {sleep}");
}

#[test]
fn dm_063_tools_that_are_not_strict_are_named() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["tools", ".", "--for", "openai"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.out, @r"
    TOOL          SERVER  SCHEMA
    echo          demo    adapted
    add           demo    adapted
    sleep         demo    not strict
    fail          demo    adapted
    mixed         demo    adapted
    change_tools  demo    adapted
    log           demo    adapted
    grow          demo    adapted
    exit          demo    not strict
    ask           demo    not strict
    env           demo    adapted
    header        demo    adapted

    12 tools for openai_strict, 0 left out
    ");
    assert_eq!(run.err.matches(" is not strict: its property `").count(), 3, "{run:?}");
}

#[test]
fn one_tool_is_shown_with_its_arguments() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["tools", ".", "--schema", "add"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(run.out, @r"
    add
    tool `add` of server `demo`, about 87 tokens; annotations: read-only, idempotent, closed world

      Adds two integers; the sum also comes as structured content

    ARGUMENT  TYPE     REQUIRED  DESCRIPTION
    a         integer  yes       The first number (format int64)
    b         integer  yes       The second number (format int64)

    RESULT  TYPE     REQUIRED  DESCRIPTION
    sum     integer  yes       a + b (format int64)
    ");
    let document = workspace.run(&["tools", ".", "--schema", "add", "--format", "json"]).json();
    assert_eq!(document["input_schema"]["required"], serde_json::json!(["a", "b"]));
    let run = workspace.run(&["tools", ".", "--schema", "ad"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains("there is no tool `ad`; did you mean `add`?\n✓ demo  ready"), "{run:?}");
    assert_eq!(
        workspace.run(&["tools", ".", "--schema", "ad", "--format", "json"]).json(),
        serde_json::Value::Null
    );
}

#[test]
fn refused_file_fails_every_list_command() {
    let workspace = Workspace::empty();
    workspace.write(
        "agent.yaml",
        "name: a\ntools:\n  - {name: two, type: mcp, description: d, server: s, command: bash}\n",
    );
    for command in ["tools", "prompts", "resources"] {
        let run = workspace.run(&[command, ".", "--format", "json"]);
        assert_eq!(run.code, Some(1), "{run:?}");
        let document = run.json();
        assert_eq!(document[command], serde_json::json!([]));
        assert_eq!(document["problems"][0]["id"], "mcp/workspace_config_error");
    }
}
