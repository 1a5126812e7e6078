//! Filters that part a list: `batch` and `slice`.

use crate::template::jinja::arguments::{Values, given, int, required};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault};

/// `batch`.
pub(in crate::template::jinja) fn batch(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [count, fill] = arguments.bind("batch", ["linecount", "fill_with"])?;
    let count = int(&required(count, "batch")?)?;
    let fill = given(fill);
    let mut batches: Vec<Vec<Value>> = Vec::new();
    for item in run.items(value)? {
        match batches.last_mut().filter(|batch| batch.len() as i128 != count) {
            Some(batch) => batch.push(item),
            // Python begins with an empty batch, which a count of zero leaves behind.
            None => {
                if batches.is_empty() && count == 0 {
                    batches.push(Vec::new());
                }
                batches.push(vec![item]);
            }
        }
    }
    if let (Some(fill), Some(last)) = (fill, batches.last_mut()) {
        let missing = usize::try_from(count.saturating_sub(last.len() as i128)).unwrap_or(0);
        run.charge(missing.saturating_mul(size_of::<Value>()))?;
        last.extend(std::iter::repeat_n(fill, missing));
    }
    let batches = batches.into_iter().map(Value::list).collect::<Result<Vec<Value>>>()?;
    Value::iterator(batches)
}

/// `slice`.
pub(in crate::template::jinja) fn slices(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [count, fill] = arguments.bind("slice", ["slices", "fill_with"])?;
    let count = int(&required(count, "slice")?)?;
    let fill = given(fill);
    let items = run.items(value)?;
    if count == 0 {
        return fault("integer division or modulo by zero");
    }
    let Ok(count) = usize::try_from(count) else { return Value::iterator(Vec::new()) };
    run.charge(count.saturating_mul(64))?;
    let (each, extra) = (items.len() / count, items.len() % count);
    let mut rest = &items[..];
    let mut slices = Vec::with_capacity(count);
    for at in 0..count {
        let (part, behind) = rest.split_at(each + usize::from(at < extra));
        rest = behind;
        let mut part = part.to_vec();
        if at >= extra {
            part.extend(fill.clone());
        }
        slices.push(Value::list(part)?);
    }
    Value::iterator(slices)
}
