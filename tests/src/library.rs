//! The programs of the library pages as doc tests.

#[doc = include_str!("../../docs/library/mcp-model.md")]
pub struct Model;

#[doc = include_str!("../../docs/library/mcp-config.md")]
pub struct Config;

#[doc = include_str!("../../docs/library/reader.md")]
pub struct Reader;

#[doc = include_str!("../../docs/library/mcp-transport.md")]
pub struct Transport;

#[doc = include_str!("../../docs/library/mcp-registry.md")]
pub struct Registry;

#[doc = include_str!("../../docs/library/mcp-host.md")]
pub struct Host;

#[doc = include_str!("../../docs/library/mcp-gateway.md")]
pub struct Gateway;

#[doc = include_str!("../../docs/library/mcp-acp.md")]
pub struct Acp;

#[doc = include_str!("../../docs/library/mcp-acp-agent.md")]
pub struct AcpAgent;
