//! Changes of the configuration while a client is connected.

use mcp_host_model::{NameClass, NamePolicy};
use mcp_host_runtime::DesiredServers;
use mcp_host_transport::{CallOptions, Eras, SessionOptions};

use crate::support::{TestGateway, server};

async fn check(eras: Eras) {
    let fixture = TestGateway::new().await;
    let session = fixture.client("/mcp", eras, SessionOptions::default()).await;
    let names = async || -> Vec<String> {
        session.list_tools().await.unwrap().items.iter().map(|item| item.name.to_string()).collect()
    };
    assert!(names().await.contains(&"demo__echo".to_owned()));
    let mut changes = session.list_changes();
    let before = changes.borrow_and_update().tools;

    let mut renamed = server("demo");
    renamed.spec.exposure.tools.naming = NamePolicy::Qualify { class: NameClass::Strict };
    renamed.spec.exposure.tools.transforms =
        vec![mcp_host_model::NameTransform::Prefix { remove: String::new(), add: "new_".into() }];
    fixture.host.apply(DesiredServers::new(vec![renamed, server("own")])).await;
    changes.wait_for(|it| it.tools > before).await.unwrap();
    let now = names().await;
    assert!(!now.contains(&"demo__echo".to_owned()), "{now:?}");
    let arguments = mcp_host_model::RawJson::parse(r#"{"text":"a"}"#.into()).unwrap();
    let refused = session.call_tool("demo__echo", &arguments, CallOptions::default()).await.unwrap_err();
    assert!(refused.to_string().contains("Tool 'demo__echo' not found"), "{refused}");
    let name = now.iter().find(|name| name.contains("new_echo")).unwrap();
    assert!(session.call_tool(name, &arguments, CallOptions::default()).await.is_ok());
    session.close(std::time::Duration::from_secs(5)).await;
    fixture.end().await;
}

#[tokio::test]
async fn renamed_tool_is_notified_with_sessions() {
    check(Eras::Legacy).await;
}

#[tokio::test]
async fn renamed_tool_is_notified_without_sessions() {
    check(Eras::Modern).await;
}
