//! Tests of the rules, one row each. The rows of filters and transforms were also run with Dominds itself.

use mcp_host_model::{NameClass, NameLimit};

use super::*;
use crate::lists::ListKind;

/// Parses rules such as `white=a,b black=c prefix=x_ replace=old_>new_ suffix=_y`, in any order. Transforms keep
/// their order.
pub(crate) fn rules(naming: NamePolicy, text: &str) -> ExposureRules {
    let mut res = ExposureRules::new(naming);
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').expect("a word has `=`");
        let patterns = || value.split(',').map(str::to_owned).collect();
        match key {
            "white" => res.filter.whitelist = patterns(),
            "black" => res.filter.blacklist = patterns(),
            "prefix" => {
                res.transforms.push(NameTransform::Prefix { remove: String::new(), add: value.to_owned() })
            }
            "suffix" => res.transforms.push(NameTransform::Suffix(value.to_owned())),
            "replace" => {
                let (remove, add) = value.split_once('>').expect("a replacement has `>`");
                res.transforms.push(NameTransform::Prefix { remove: remove.to_owned(), add: add.to_owned() });
            }
            _ => panic!("unknown word {key}"),
        }
    }
    res
}

const HOLODECK: NamePolicy = NamePolicy::Qualify { class: NameClass::Strict };

/// Checks a decision. `want` is `<exposed> (<rule>)` or `!<verdict> (<rule>)`.
#[track_caller]
fn check(naming: NamePolicy, rules_text: &str, original: &str, want: &str) {
    let server = ServerId::parse("my srv").unwrap();
    let prepared = rules(naming, rules_text);
    let it = decide(&server, &prepared, original);
    let stages = CompiledRules::new(&server, &prepared).explain(ListKind::Tool, original);
    let last = stages.last().expect("there is always a rule to ask");
    assert_eq!(last.name.as_deref(), it.exposed.as_ref().map(ExposedName::as_str), "{stages:?}");
    assert_eq!((it.server, it.original.as_str()), (server, original));
    assert_eq!(it.exposed.is_some(), it.verdict == ExposureVerdict::Exposed);
    let name = it.exposed.map_or_else(|| format!("!{}", it.verdict.as_str()), |it| it.to_string());
    assert_eq!(format!("{name} ({})", it.rule), want);
}

#[test]
fn dm_047_dm_048_dm_050_an_invalid_name_is_rejected_before_anything_else() {
    let original = "!invalid_name (the original name must match ^[a-zA-Z0-9_-]{1,64}$)";
    check(NamePolicy::Reject, "", "a.b", original);
    check(NamePolicy::Reject, "", "工具", original);
    check(NamePolicy::Reject, "", &"x".repeat(65), original);
    check(NamePolicy::Reject, "replace=a.>a", "a.b", original);
    check(NamePolicy::Reject, "white=a* black=*", "a.b", original);
    check(NamePolicy::Reject, "", "", "!invalid_name (a name must not be empty)");
}

#[test]
fn dm_047_name_is_checked_again_after_transforms() {
    check(
        NamePolicy::Reject,
        "suffix=.v1",
        "open",
        "!invalid_name (the name after transforms, `open.v1`, must match ^[a-zA-Z0-9_-]{1,64}$)",
    );
    check(
        NamePolicy::Reject,
        "replace=open>",
        "open",
        "!invalid_name (the name after transforms, ``, must match ^[a-zA-Z0-9_-]{1,64}$)",
    );
    let longest = "x".repeat(63);
    check(NamePolicy::Reject, "suffix=y", &longest, &format!("{longest}y (no filter)"));
}

#[test]
fn dm_036_to_dm_041_filter_matches_the_original_name() {
    check(
        NamePolicy::Reject,
        "white=browser_* prefix=p_",
        "browser_click",
        "p_browser_click (whitelist `browser_*`)",
    );
    check(
        NamePolicy::Reject,
        "white=p_* prefix=p_",
        "click",
        "!not_whitelisted (no pattern of the whitelist matches: `p_*`)",
    );
    check(
        NamePolicy::Reject,
        "black=p_* prefix=p_",
        "click",
        "p_click (neither whitelist nor blacklist matches)",
    );
    check(NamePolicy::Reject, "black=a,*_unsafe", "x_unsafe", "!blacklisted (blacklist `*_unsafe`)");
    check(
        NamePolicy::Reject,
        "white=page_unsafe black=*_unsafe",
        "page_unsafe",
        "page_unsafe (whitelist `page_unsafe` overrides blacklist `*_unsafe`)",
    );
    check(HOLODECK, "white=read.*", "read.file", "my-srv__read-file (whitelist `read.*`)");
}

#[test]
fn dm_042_to_dm_045_transforms_apply_in_the_order_of_their_list() {
    check(NamePolicy::Reject, "prefix=playwright_", "browser_click", "playwright_browser_click (no filter)");
    check(NamePolicy::Reject, "prefix=a_ prefix=b_", "open", "b_a_open (no filter)");
    check(NamePolicy::Reject, "suffix=_s prefix=p_ suffix=_t", "open", "p_open_s_t (no filter)");
    check(
        NamePolicy::Reject,
        "replace=stock_prefix_>my_prefix_",
        "stock_prefix_get",
        "my_prefix_get (no filter)",
    );
    check(NamePolicy::Reject, "replace=stock_prefix_>my_prefix_", "open", "my_prefix_open (no filter)");
    check(NamePolicy::Reject, "prefix=x_ replace=x_>y_", "open", "y_open (no filter)");
}

#[test]
fn hd_114_qualified_names_come_after_the_transforms() {
    check(HOLODECK, "", "read.file", "my-srv__read-file (no filter)");
    check(HOLODECK, "prefix=a. suffix=/b", "x", "my-srv__a-x-b (no filter)");
    check(
        NamePolicy::Qualify { class: NameClass::WithDot },
        "",
        "read.file é",
        "my-srv__read.file-- (no filter)",
    );
    check(HOLODECK, "", "", "!invalid_name (a name must not be empty)");
    check(HOLODECK, "replace=x>", "x", "my-srv__ (no filter)");
}

#[test]
fn x_01_x_03_sk_01_normalised_name_has_no_server_prefix() {
    let strict = NamePolicy::Normalise { class: NameClass::Strict };
    check(strict, "", "read.file", "read-file (no filter)");
    check(strict, "black=read.*", "read.file", "!blacklisted (blacklist `read.*`)");
    check(strict, "prefix=a. suffix=/b", "x", "a-x-b (no filter)");
    check(strict, "replace=x>", "x", "!invalid_name (the transforms leave nothing of the name)");
    check(NamePolicy::Normalise { class: NameClass::WithDot }, "", "read.file@1", "read.file-1 (no filter)");
    // The same name is refused by a policy that must not rename (DM-048).
    check(
        NamePolicy::Reject,
        "",
        "read.file",
        "!invalid_name (the original name must match ^[a-zA-Z0-9_-]{1,64}$)",
    );
}

/// Checks the length of the longest name that is kept unchanged, and the name that results if it is one letter
/// longer.
#[track_caller]
fn check_limit(naming: NamePolicy, limit: NameLimit, longest: usize, longer: ExposureVerdict) {
    let mut rules = rules(naming, "");
    rules.limit = limit;
    let server = ServerId::parse("s").unwrap();
    let name = |length: usize| decide(&server, &rules, &"x".repeat(length));
    let shown = |it: &Decision| it.exposed.as_ref().map(|it| it.as_str().to_owned());
    let (fits, over) = (name(longest), name(longest + 1));
    assert!(shown(&fits).is_some_and(|it| it.ends_with(&"x".repeat(longest))), "{fits:?}");
    assert_eq!(over.verdict, longer, "{over:?}");
    if naming == NamePolicy::Pass {
        assert_eq!(shown(&over), Some("x".repeat(longest + 1)));
    } else if let Some(cut) = shown(&over) {
        assert_eq!(cut.len(), limit.bytes(), "{cut}");
        assert!(!cut.ends_with("xxxxxxxx"), "it ends with its hash: {cut}");
    }
}

#[test]
fn limit_shortens_names_only_under_renaming_policies() {
    for limit in [NameLimit::Common, NameLimit::Gemini, NameLimit::Anthropic] {
        check_limit(NamePolicy::Reject, limit, limit.bytes(), ExposureVerdict::InvalidName);
        check_limit(
            NamePolicy::Normalise { class: NameClass::Strict },
            limit,
            limit.bytes(),
            ExposureVerdict::Exposed,
        );
        check_limit(HOLODECK, limit, limit.bytes() - "s__".len(), ExposureVerdict::Exposed);
        check_limit(NamePolicy::Pass, limit, limit.bytes(), ExposureVerdict::Exposed);
    }
    assert_eq!(
        [NameLimit::Common, NameLimit::Gemini, NameLimit::Anthropic].map(NameLimit::bytes),
        [64, 63, 128]
    );
}

#[test]
fn passed_names_stay_as_they_are() {
    check(NamePolicy::Pass, "", "a/b c", "a/b c (no filter)");
    check(NamePolicy::Pass, "replace=x>", "x", "!invalid_name (the transforms leave nothing of the name)");
}

#[test]
fn decision_has_the_expected_text() {
    let server = ServerId::parse("s").unwrap();
    let shown = decide(&server, &rules(NamePolicy::Reject, ""), "a");
    assert_eq!(
        serde_json::to_string(&shown).unwrap(),
        r#"{"server":"s","original":"a","exposed":"a","verdict":"exposed","rule":"no filter"}"#
    );
    let hidden = decide(&server, &rules(NamePolicy::Reject, "black=*"), "a");
    assert_eq!(
        serde_json::to_string(&hidden).unwrap(),
        r#"{"server":"s","original":"a","exposed":null,"verdict":"blacklisted","rule":"blacklist `*`"}"#
    );
}

#[test]
fn long_whitelist_is_truncated_in_the_rule() {
    let patterns: Vec<String> = (0..10_000).map(|it| format!("pattern{it}")).collect();
    let rules = rules(NamePolicy::Pass, &format!("white={}", patterns.join(",")));
    assert!(decide(&ServerId::parse("s").unwrap(), &rules, "x").rule.len() < 300);
}
