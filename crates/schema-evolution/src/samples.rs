//! Sample values of a type or a pattern, and the source of choices.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};

use crate::keyword::{self, Types};

/// A source of choices. The first one always chooses the least; the others are random.
pub(crate) struct Choices {
    state: u64,
    /// The size of the next text, array or object.
    pub size: Option<usize>,
    /// Whether optional keys are left out.
    is_sparse: bool,
    /// The number of generated values.
    values: usize,
}

/// The number of values in a generated document.
const MAX_VALUES: usize = 10_000;

/// The number of values beyond which optional parts are left out.
const FEW_VALUES: usize = 200;

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            size: None,
            // Optional keys with rules of their own make many documents invalid.
            is_sparse: !seed.is_multiple_of(3),
            values: 0,
        }
    }

    /// A number below `count`; 0 for the first source.
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

    pub(crate) fn optional(&mut self) -> bool {
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

    pub(crate) fn is_least(&self) -> bool {
        self.state == 0
    }
}

/// A value of a type.
pub(crate) fn sample_of_type(kind: Types) -> Value {
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
    of_pattern(pattern, &mut Choices::new(0))
}

/// A text that matches a pattern. `None` for patterns with features that are not regular.
pub(crate) fn of_pattern(pattern: &str, choices: &mut Choices) -> Option<String> {
    let hir = regex_syntax::ParserBuilder::new().nest_limit(50).build().parse(pattern).ok()?;
    let mut res = String::new();
    write(&hir, choices, &mut res)?;
    (crate::keyword::matches(pattern, &res) == Some(true)).then_some(res)
}

fn write(hir: &Hir, choices: &mut Choices, res: &mut String) -> Option<()> {
    if res.len() > 4_096 {
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
            let wanted = ends[choices.pick(ends.len())];
            res.push(if wanted.is_control() { letters.map_or(wanted, |_| 'a') } else { wanted });
        }
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Repetition(repetition) => {
            let least = repetition.min;
            let most = repetition.max.unwrap_or(least.saturating_add(3)).min(least.saturating_add(64));
            let extra = usize::try_from(most - least).unwrap_or(0);
            let count = match choices.pick(3) {
                0 => least.max(u32::from(extra > 0 && choices.pick(2) == 1)),
                1 => most,
                _ => least + u32::try_from(choices.pick(extra + 1)).unwrap_or(0),
            };
            for _ in 0..count {
                write(&repetition.sub, choices, res)?;
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, choices, res)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, choices, res)?;
            }
        }
        HirKind::Alternation(parts) => write(parts.get(choices.pick(parts.len()))?, choices, res)?,
    }
    Some(())
}
