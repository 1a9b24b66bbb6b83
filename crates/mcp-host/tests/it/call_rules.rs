//! Rules for calls: what is sent, asked about and refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{CallEffect, CallResult, RawJson, ToolAction};
use mcp_host_registry::CallFacts;
use mcp_host_runtime::{
    AnswerFuture, AnswerScope, AnswerVerdict, ApprovalPrompt, CallAnswer, CallAnswers, CallDecision,
    CallPolicy, CallQuestion, CallRefusal, CallRuleOptions, CallRuling, DialogId, HostOptions,
    PendingQuestions, PolicyCall, RulePolicy, RulingOutcome, Supervision, ToolCall,
};
use mcp_testkit::servers::configured_server;
use serde_json::json;

use crate::fixture::{HostFixture, text_or_error};
use crate::scripted_server::ScriptedServer;

fn options(rules: &CallRuleOptions) -> HostOptions {
    let mut options = HostOptions::default();
    options.supervision = Supervision::Off;
    options.calls = Arc::new(RulePolicy::new(rules.clone()));
    options
}

fn rules(lines: &[&str]) -> CallRuleOptions {
    let mut options = CallRuleOptions::default();
    options.rules = lines.iter().map(|it| it.parse().unwrap()).collect();
    options
}

/// A host with the server `a` and the rules.
async fn host(rules: &CallRuleOptions) -> HostFixture {
    let peer = ScriptedServer::new(&["echo", "other"]);
    HostFixture::with(&[("a", peer)], options(rules)).started().await
}

#[track_caller]
fn check(fixture: &HostFixture, result: &CallResult, want: &str, sent: usize) {
    assert_eq!(text_or_error(result), want);
    assert_eq!(fixture.peer("a").count("tools/call"), sent);
}

/// A prompt with fixed answers, which notes the questions.
#[derive(Default)]
struct Answers {
    answers: Mutex<Vec<CallAnswer>>,
    questions: Mutex<Vec<Arc<CallQuestion>>>,
}

impl Answers {
    fn new(answers: &[(AnswerVerdict, AnswerScope)]) -> Arc<Answers> {
        let answers = answers.iter().rev().map(|it| CallAnswer { verdict: it.0, scope: it.1 }).collect();
        Arc::new(Answers { answers: Mutex::new(answers), questions: Mutex::default() })
    }

    fn count(&self) -> usize {
        self.questions.lock().unwrap().len()
    }
}

impl ApprovalPrompt for Answers {
    fn ask(&self, question: Arc<CallQuestion>) -> AnswerFuture {
        self.questions.lock().unwrap().push(question);
        let answer = self.answers.lock().unwrap().pop().expect("no other question is expected");
        Box::pin(async move { Ok(answer) })
    }
}

const REFUSED: &str = "MCPCallRefusedError: Tool 'a__echo' was not called: ";

#[tokio::test(start_paused = true)]
async fn cp_005_refused_call_is_not_sent() {
    let fixture = host(&rules(&["allow tools=other", "deny"])).await;
    check(&fixture, &fixture.call("a__echo", "{}").await, &format!("{REFUSED}the rule `deny` refuses it"), 0);
    check(&fixture, &fixture.call("a__other", "{}").await, "{}", 1);
    // A pinned generation and a raw call are no way around.
    let pinned = fixture.host.pin();
    let result = pinned.call(ToolCall::new("a__echo", RawJson::empty_object())).await;
    check(&fixture, &result, &format!("{REFUSED}the rule `deny` refuses it"), 1);
    let failure = fixture.host.call_raw(ToolCall::new("a__echo", RawJson::empty_object())).await.unwrap_err();
    let ruling = CallRuling::new(RulingOutcome::Refused, "deny".into());
    assert_eq!(failure.ruling.as_deref(), Some(&ruling));
    let sent = fixture.host.call_raw(ToolCall::new("a__other", RawJson::empty_object())).await.unwrap();
    assert_eq!(sent.ruling.unwrap().rule, "allow tools=other".into());
    assert_eq!(fixture.peer("a").count("tools/call"), 2);
}

fn server_with(calls: &[&str]) -> ResolvedServer {
    let mut server = configured_server("a");
    server.spec.calls.stated = calls.iter().map(|it| it.parse().unwrap()).collect();
    server
}

#[tokio::test(start_paused = true)]
async fn cp_006_rules_of_an_entry_follow_those_of_the_host_and_apply_at_once() {
    let fixture = HostFixture::with(
        &[("a", ScriptedServer::new(&["echo", "other"]))],
        options(&rules(&["allow tools=other users=ci"])),
    );
    fixture.apply(vec![server_with(&["deny"])]).await;
    fixture.host.wait_until_ready().await;
    let refused = "the rule `deny (entry 'a')` refuses it";
    check(&fixture, &fixture.call("a__echo", "{}").await, &format!("{REFUSED}{refused}"), 0);
    let mut call = ToolCall::new("a__other", RawJson::empty_object());
    call.options.user = Some("ci".into());
    check(&fixture, &fixture.host.call(call).await, "{}", 1);
    // Changed rules need no restart, and a pinned generation has today's rules.
    let pinned = fixture.host.pin();
    fixture.apply(vec![server_with(&[])]).await;
    check(&fixture, &fixture.call("a__echo", "{}").await, "{}", 2);
    let result = pinned.call(ToolCall::new("a__echo", RawJson::empty_object())).await;
    check(&fixture, &result, "{}", 3);
    assert_eq!(fixture.peer("a").count("connect"), 1);
}

#[test]
fn cp_007_file_of_a_project_lifts_no_default() {
    let mut rules = rules(&[]);
    rules.default = CallEffect::Deny;
    let policy = RulePolicy::new(rules);
    let mut server = server_with(&["allow"]);
    for (of_project, want) in [(false, CallEffect::Allow), (true, CallEffect::Deny)] {
        server.needs_approval = of_project;
        let (id, action) = (server.spec.id.clone(), ToolAction::Destructive);
        let facts = CallFacts { server: &id, tool: "echo", action, user: None };
        assert_eq!(policy.explain(Some(&server), &facts).effect, want);
    }
}

#[tokio::test(start_paused = true)]
async fn cp_008_without_anybody_to_ask_the_call_is_refused() {
    let fixture = host(&rules(&["ask"])).await;
    let want = "the rule `ask` requires an approval, and nobody can be asked";
    check(&fixture, &fixture.call("a__echo", "{}").await, &format!("{REFUSED}{want}"), 0);
}

#[tokio::test(start_paused = true)]
async fn cp_009_answers_are_remembered_as_the_user_says() {
    use AnswerScope::{Once, Session};
    use AnswerVerdict::{Allow, Deny};
    let prompt = Answers::new(&[(Deny, Once), (Allow, Once), (Allow, Session)]);
    let mut rules = rules(&["ask"]);
    rules.prompt = Some(Arc::<Answers>::clone(&prompt));
    let fixture = host(&rules).await;
    let declined = "the user declined it, who was asked because of the rule `ask`";
    check(&fixture, &fixture.call("a__echo", "{}").await, &format!("{REFUSED}{declined}"), 0);
    for (sent, asked) in [(1, 2), (2, 3), (3, 3)] {
        check(&fixture, &fixture.call("a__echo", r#"{"x":1}"#).await, r#"{"x":1}"#, sent);
        assert_eq!(prompt.count(), asked);
    }
    let question = Arc::clone(&prompt.questions.lock().unwrap()[0]);
    assert_eq!((&*question.tool, question.arguments.as_str(), question.is_changed), ("echo", "{}", false));
    // Arguments are private.
    assert!(!format!("{:?}", prompt.questions.lock().unwrap()[1]).contains("\"x\""));
    // An answer for a session is not one for another dialog.
    prompt.answers.lock().unwrap().push(CallAnswer { verdict: Deny, scope: Once });
    let dialog = fixture.host.dialog(DialogId::new("d"));
    let result = dialog.call(ToolCall::new("a__echo", RawJson::empty_object())).await;
    check(&fixture, &result, &format!("{REFUSED}{declined}"), 3);
}

#[tokio::test]
async fn cp_010_answer_for_always_outlives_the_host_until_the_tool_changes() {
    let folder = tempfile::tempdir().unwrap();
    let prompt = Answers::new(&[(AnswerVerdict::Allow, AnswerScope::Always)]);
    let mut rules = rules(&["ask"]);
    rules.prompt = Some(Arc::<Answers>::clone(&prompt));
    rules.answers = Some(CallAnswers::new(folder.path().join("call-answers.json")));
    let first = host(&rules).await;
    check(&first, &first.call("a__echo", "{}").await, "{}", 1);
    check(&first, &first.call("a__echo", "{}").await, "{}", 2);
    let second = host(&rules).await;
    check(&second, &second.call("a__echo", "{}").await, "{}", 1);
    assert_eq!(prompt.count(), 1);

    let changed = json!({"name": "echo", "description": "now with more", "inputSchema": {"type": "object"}});
    let peer = ScriptedServer::new(&[]);
    *peer.tools.lock().unwrap() = vec![changed];
    let third = HostFixture::with(&[("a", peer)], options(&rules)).started().await;
    prompt
        .answers
        .lock()
        .unwrap()
        .push(CallAnswer { verdict: AnswerVerdict::Deny, scope: AnswerScope::Once });
    assert!(text_or_error(&third.call("a__echo", "{}").await).starts_with(REFUSED));
    assert_eq!(prompt.count(), 2);
    assert!(prompt.questions.lock().unwrap()[1].is_changed);
}

/// A host that asks through a list of pending questions.
async fn host_with_list() -> (Arc<HostFixture>, PendingQuestions) {
    let pending = PendingQuestions::new();
    let mut rules = rules(&["ask"]);
    rules.prompt = Some(Arc::new(pending.clone()));
    (Arc::new(host(&rules).await), pending)
}

async fn wait_for(pending: &PendingQuestions, count: usize) {
    let mut changes = pending.subscribe();
    while pending.list().len() != count {
        changes.changed().await.unwrap();
    }
}

fn spawn_call(fixture: &Arc<HostFixture>, deadline: Option<Duration>) -> tokio::task::JoinHandle<CallResult> {
    let fixture = Arc::clone(fixture);
    let mut call = ToolCall::new("a__echo", RawJson::empty_object());
    call.options.deadline = deadline;
    tokio::spawn(async move { fixture.host.call(call).await })
}

#[tokio::test]
async fn cp_011_waiting_call_ends_with_its_answer_or_its_cancellation() {
    let (fixture, pending) = host_with_list().await;
    let once = CallAnswer { verdict: AnswerVerdict::Allow, scope: AnswerScope::Once };
    let call = spawn_call(&fixture, None);
    wait_for(&pending, 1).await;
    let id = pending.list()[0].id;
    assert_eq!((pending.answer(id + 1, once), pending.answer(id, once), pending.answer(id, once)), (0, 1, 0));
    check(&fixture, &call.await.unwrap(), "{}", 1);

    let cancelled = spawn_call(&fixture, None);
    wait_for(&pending, 1).await;
    cancelled.abort();
    wait_for(&pending, 0).await;
    assert_eq!(fixture.peer("a").count("tools/call"), 1);

    // An answer for the session is one for all of them.
    let calls = [spawn_call(&fixture, None), spawn_call(&fixture, None)];
    wait_for(&pending, 2).await;
    let session = CallAnswer { scope: AnswerScope::Session, ..once };
    assert_eq!(pending.answer(pending.list()[1].id, session), 2);
    for call in calls {
        assert_eq!(text_or_error(&call.await.unwrap()), "{}");
    }
}

#[tokio::test]
async fn cp_012_questions_are_limited_in_number_and_time() {
    let (fixture, pending) = host_with_list().await;
    let calls: Vec<_> = (0..16).map(|_| spawn_call(&fixture, None)).collect();
    wait_for(&pending, 16).await;
    let result = spawn_call(&fixture, None).await.unwrap();
    let want = "the rule `ask` requires an approval, and too many calls wait for an approval";
    check(&fixture, &result, &format!("{REFUSED}{want}"), 0);
    calls.iter().for_each(|it| it.abort());
    wait_for(&pending, 0).await;

    let result = spawn_call(&fixture, Some(Duration::from_millis(50))).await.unwrap();
    let text = text_or_error(&result);
    assert!(text.contains("nobody answered within 0.0"), "{text}");
    assert!(text.contains("`mcp-host approvals` shows the calls that wait"), "{text}");
    assert_eq!(fixture.peer("a").count("tools/call"), 0);
    assert_eq!(pending.list().len(), 0);
}

#[tokio::test]
async fn cp_013_tool_that_changes_while_the_user_is_asked_is_asked_about_again() {
    let (fixture, pending) = host_with_list().await;
    let call = spawn_call(&fixture, None);
    wait_for(&pending, 1).await;
    *fixture.peer("a").tools.lock().unwrap() =
        vec![json!({"name": "echo", "description": "changed", "inputSchema": {"type": "object"}})];
    fixture.host.restart(&configured_server("a").spec.id).await.unwrap();
    let allow = CallAnswer { verdict: AnswerVerdict::Allow, scope: AnswerScope::Session };
    let first = pending.list()[0].id;
    pending.answer(first, allow);
    let mut changes = pending.subscribe();
    while pending.list().iter().all(|it| it.id == first) {
        changes.changed().await.unwrap();
    }
    assert_eq!(fixture.peer("a").count("tools/call"), 0);
    pending.answer(pending.list()[0].id, allow);
    check(&fixture, &call.await.unwrap(), "{}", 1);
}

/// Refuses by size of the arguments.
struct SizePolicy;

impl CallPolicy for SizePolicy {
    fn decide(&self, call: &PolicyCall<'_>) -> CallDecision {
        if call.call.arguments.as_bytes().len() <= 2 {
            return CallDecision::Allow(None);
        }
        let ruling = CallRuling::new(RulingOutcome::Refused, "small arguments".into());
        CallDecision::Refuse(CallRefusal::new(ruling, "its arguments are large"))
    }
}

#[tokio::test(start_paused = true)]
async fn cp_014_library_decides_by_a_policy_of_its_own() {
    let mut options = HostOptions::default();
    options.calls = Arc::new(SizePolicy);
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["echo"]))], options).started().await;
    check(&fixture, &fixture.call("a__echo", "{}").await, "{}", 1);
    let refused = fixture.call("a__echo", r#"{"a":1}"#).await;
    check(&fixture, &refused, &format!("{REFUSED}its arguments are large"), 1);
}
