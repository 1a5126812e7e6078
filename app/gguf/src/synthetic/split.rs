//! Splits synthetic models into several files.

use super::Synthetic;
use crate::{GgufWriter, SPLIT_COUNT_KEY, SPLIT_NO_KEY, SPLIT_TENSORS_KEY, Value, WriteError};

/// The metadata that marks a file as part of a split.
fn split_metadata(number: u16, count: u16, tensors: u32) -> [(&'static str, Value); 3] {
    [
        (SPLIT_NO_KEY, Value::U16(number)),
        (SPLIT_COUNT_KEY, Value::U16(count)),
        // llama.cpp reads a signed number here.
        (SPLIT_TENSORS_KEY, Value::I32(tensors.try_into().unwrap_or(i32::MAX))),
    ]
}

impl Synthetic {
    /// The model as `count` files with the tensors distributed in order, for tests of split models.
    ///
    /// # Errors
    /// The description is not a valid model.
    pub fn to_split(&self, count: u16) -> Result<Vec<Vec<u8>>, WriteError> {
        let (whole, values) = self.plan()?;
        let layout = whole.layout()?;
        let per_file = layout.tensors.len().div_ceil(usize::from(count.max(1)));
        let mut files = Vec::new();
        for number in 0..count {
            let range = (usize::from(number) * per_file).min(layout.tensors.len())
                ..((usize::from(number) + 1) * per_file).min(layout.tensors.len());
            let mut writer = GgufWriter::new();
            if number == 0 {
                layout.metadata.iter().for_each(|(key, value)| {
                    writer.set(key, value.clone());
                });
            }
            for (key, value) in split_metadata(number, count, layout.tensors.len() as u32) {
                writer.set(key, value);
            }
            for tensor in &layout.tensors[range.clone()] {
                writer.tensor(&tensor.name, tensor.kind, &tensor.dims)?;
            }
            let mut values = values[range].iter();
            let mut file = Vec::new();
            let mut blocks = Vec::new();
            writer.write_to(&mut file, |tensor, out| match values.next() {
                Some(values) => self.write_tensor(tensor, *values, &mut blocks, out),
                None => Ok(()),
            })?;
            files.push(file);
        }
        Ok(files)
    }
}
