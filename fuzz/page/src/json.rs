//! Rooms and catalogues: valid ones whose texts, numbers and lists are as bad as they can be, and some that are no JSON at all.

use potluck_plan::random::Random;
use serde_json::{Number, Value};

use crate::words;

/// Numbers at which sums and lengths go wrong.
const EDGES: [u64; 9] = [0, 1, 255, 65_535, 0x7fff_ffff, 0xffff_ffff, 1 << 53, i64::MAX as u64, u64::MAX];

/// `example` with changes: about `length` bytes of it.
pub fn text(example: &str, random: &mut Random, length: usize) -> String {
    let mut value = serde_json::from_str(example).unwrap_or(Value::Null);
    // Few changes, so that most texts are still what they are read as.
    let mut changes = random.below(8);
    while changes > 0 {
        change(&mut value, random, length / 8);
        changes -= 1;
    }
    let text = value.to_string();
    match random.below(10) {
        0 => text[..text.floor_char_boundary(random.below(text.len()))].to_owned(),
        1 => "[".repeat(length),
        2 => format!("{{\"models\":{}", "[{\"a\":".repeat(length / 6)),
        _ => text,
    }
}

/// Goes down to some place and changes what is there.
fn change(value: &mut Value, random: &mut Random, length: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let at = random.below(fields.len());
            if let Some(field) = fields.values_mut().nth(at) {
                change(field, random, length);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            let most = (length / 256).min(400);
            match random.below(6) {
                0 => items.clear(),
                // As many members, stages or entries as fit.
                1 => items.extend(std::iter::repeat_n(items[at].clone(), random.below(most))),
                _ => change(&mut items[at], random, length),
            }
        }
        Value::String(text) => *text = words::text(random, length),
        Value::Number(number) => {
            *number = match random.below(4) {
                0 => Number::from(-1),
                1 => Number::from_f64([1e300, -1e300, 1e-300, 0.5][random.below(4)]).unwrap_or_else(|| 0.into()),
                _ => Number::from(EDGES[random.below(EDGES.len())]),
            }
        }
        Value::Bool(flag) => *flag = !*flag,
        _ => {}
    }
}
