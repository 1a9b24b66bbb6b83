//! Sample values of a type or a pattern, and the source of choices.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};

use crate::keyword::{self, PatternMatch, TypeSet, match_pattern};

/// A source of pseudo-random choices. With seed 0, it always chooses the smallest option.
pub(crate) struct ChoiceSource {
    /// The state of the xorshift generator; 0 for the source that chooses the smallest option.
    state: u64,
    /// The size that the next text, array or object must have, if any.
    pub size: Option<usize>,
    /// Whether optional keys are left out.
    is_sparse: bool,
    /// The number of generated values.
    values: usize,
}

/// The maximum number of values in a generated document.
const MAX_VALUES: usize = 10_000;

/// The number of values beyond which optional parts are left out.
const FEW_VALUES: usize = 200;

/// The maximum length of a text for a pattern, in bytes.
const MAX_TEXT: usize = 4_096;
impl ChoiceSource {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            size: None,
            // Optional keys with rules of their own make many documents invalid.
            is_sparse: !seed.is_multiple_of(3),
            values: 0,
        }
    }

    /// Chooses a number below `count`; 0 with seed 0.
    pub(crate) fn pick(&mut self, count: usize) -> usize {
        if self.state == 0 || count < 2 {
            return 0;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let count = u64::try_from(count).unwrap_or(1);
        usize::try_from((self.state >> 11) % count).unwrap_or(0)
    }

    /// Chooses whether an optional part is generated.
    pub(crate) fn includes_optional(&mut self) -> bool {
        !self.is_sparse && !self.is_large() && self.pick(3) == 1
    }

    /// Counts a value. `None` if the document is too large.
    pub(crate) fn count_value(&mut self) -> Option<()> {
        self.values += 1;
        (self.values <= MAX_VALUES).then_some(())
    }

    /// Whether no optional parts are added any more.
    pub(crate) fn is_large(&self) -> bool {
        self.values > FEW_VALUES
    }

    /// Whether the smallest option is always chosen.
    pub(crate) fn is_minimal(&self) -> bool {
        self.state == 0
    }
}

/// A value of a type.
pub(crate) fn sample_of_type(kind: TypeSet) -> Value {
    match kind {
        keyword::NULL => Value::Null,
        keyword::BOOLEAN => true.into(),
        keyword::INTEGER => 1.into(),
        keyword::FRACTION => 1.5.into(),
        keyword::STRING => "x".into(),
        keyword::ARRAY => Value::Array(Vec::new()),
        _ => Value::Object(Map::new()),
    }
}

/// The shortest simple text that matches a pattern.
pub(crate) fn sample_of_pattern(pattern: &str) -> Option<String> {
    text_for_pattern(pattern, &mut ChoiceSource::new(0))
}

/// A text that matches a pattern. `None` for patterns with features that are not regular.
pub(crate) fn text_for_pattern(pattern: &str, choices: &mut ChoiceSource) -> Option<String> {
    let hir = regex_syntax::ParserBuilder::new().nest_limit(50).build().parse(pattern).ok()?;
    let mut res = String::new();
    write_match(&hir, choices, &mut res)?;
    (match_pattern(pattern, &res) == PatternMatch::Yes).then_some(res)
}

/// Appends a text that the expression matches.
fn write_match(hir: &Hir, choices: &mut ChoiceSource, res: &mut String) -> Option<()> {
    if res.len() > MAX_TEXT {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => res.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let letters = class.ranges().iter().find(|it| it.start() <= 'a' && 'a' <= it.end());
            let ranges = class.ranges();
            let range = ranges.get(choices.pick(ranges.len()))?;
            let ends = [letters.map_or(range.start(), |_| 'a'), range.start(), range.end()];
            let character = ends[choices.pick(ends.len())];
            res.push(if character.is_control() { letters.map_or(character, |_| 'a') } else { character });
        }
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Repetition(repetition) => {
            let min = repetition.min;
            let max = repetition.max.unwrap_or(min.saturating_add(3)).min(min.saturating_add(64));
            let extra = usize::try_from(max - min).unwrap_or(0);
            let count = match choices.pick(3) {
                0 => min.max(u32::from(extra > 0 && choices.pick(2) == 1)),
                1 => max,
                _ => min + u32::try_from(choices.pick(extra + 1)).unwrap_or(0),
            };
            for _ in 0..count {
                write_match(&repetition.sub, choices, res)?;
            }
        }
        HirKind::Capture(capture) => write_match(&capture.sub, choices, res)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write_match(part, choices, res)?;
            }
        }
        HirKind::Alternation(parts) => write_match(parts.get(choices.pick(parts.len()))?, choices, res)?,
    }
    Some(())
}
