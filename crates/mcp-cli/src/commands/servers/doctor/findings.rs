//! Searches the texts of servers for findings: of each server alone, and of all together for text about other servers.

use mcp_host_model::Severity;
use mcp_host_registry::{
    CatalogServer, FindingKind, ItemFinding, OtherTools, Problem, ProblemKind, server_findings,
};
use mcp_host_runtime::ServerDefinitions;

use super::report::StepResult;
use crate::output::count;
use crate::render::findings::{finding_title, is_hard};

/// The maximum number of findings in a message.
const MAX_FINDINGS: usize = 3;

/// Searches the texts of one server.
pub(super) fn check_texts(offer: &ServerDefinitions) -> StepResult {
    let found = server_findings(offer.instructions.as_deref(), &offer.lists, &OtherTools::default());
    let items = count(offer.observed.items.values().map(|items| items.len()).sum(), "item");
    let hard: Vec<&ItemFinding> = found.iter().filter(|it| is_hard(it)).collect();
    if hard.is_empty() {
        let soft = match found.len() {
            0 => "nothing suspicious".to_owned(),
            length => count(length, "soft finding"),
        };
        return StepResult::passed(format!("{soft} in {items}"));
    }
    let mut texts: Vec<String> = hard.iter().take(MAX_FINDINGS).map(|it| finding_text(it)).collect();
    if hard.len() > MAX_FINDINGS {
        texts.push(format!("{} more", hard.len() - MAX_FINDINGS));
    }
    let help = "do not use this server until you have read these texts; `mcp-host lock` withholds such items";
    StepResult::warning(texts.join("; "), help)
}

/// Finds text about tools of other servers.
pub(super) fn cross_server_problems(servers: &[CatalogServer]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for server in servers {
        let own = server.lists.tools.iter().map(|it| &*it.name);
        let others = servers.iter().filter(|it| it.id != server.id);
        let others = others.flat_map(|other| other.lists.tools.iter().map(|it| &*it.name));
        let found = server_findings(None, &server.lists, &OtherTools::new(others, own));
        for found in found.iter().filter(|it| it.finding.kind == FindingKind::OtherTool && is_hard(it)) {
            let id = format!("mcp/server/{}/suspicious_text", server.id);
            let message = format!("server `{}`: {}", server.id, finding_text(found));
            let mut problem = Problem::new(id, ProblemKind::SuspiciousText, Severity::Warning, message);
            problem.server = Some(server.id.clone());
            problems.push(problem);
        }
    }
    problems
}

fn finding_text(found: &ItemFinding) -> String {
    format!("{}: \"{}\"", finding_title(found), found.finding.evidence)
}
