//! Turns the bytes of a model into those of its shadow on their way to the shadow's engine.

use potluck_gguf::{GgufError, requantize_rows};
use potluck_model::{UnitMap, UnitTensor};

use super::jobs::Place;

/// Requantizes tensors, whose bytes come in order. It keeps a row that is not whole yet, and less than a word of what it made.
pub struct Requantizer<'a> {
    from: &'a UnitMap,
    to: &'a UnitMap,
    /// Bytes of a row that is not whole.
    rest: Vec<u8>,
    /// What is made and not given out.
    made: Vec<u8>,
    /// Bytes of the tensor that were given out.
    done: u64,
}

impl<'a> Requantizer<'a> {
    /// From the types of some units to those of others.
    pub fn new(from: &'a UnitMap, to: &'a UnitMap) -> Self {
        Self { from, to, rest: Vec::new(), made: Vec::new(), done: 0 }
    }

    /// Takes the next bytes of a tensor, or the first ones of another. Returns what can be uploaded, and where.
    ///
    /// # Errors
    /// The types are not supported.
    pub fn push(&mut self, place: Place, bytes: &[u8]) -> Result<(Place, Vec<u8>), GgufError> {
        let of = |units: &'a UnitMap| units.tensors(place.unit).get(place.tensor);
        let (Some(from), Some(to)) = (of(self.from), of(self.to)) else { return Ok((place, Vec::new())) };
        if place.offset == 0 {
            (self.done, self.rest, self.made) = (0, Vec::new(), Vec::new());
        }
        self.requantize(from, to, bytes)?;
        let is_whole = place.offset + bytes.len() as u64 == from.range.len;
        // Pieces of a tensor are whole words, but for the last one.
        let ready = if is_whole { self.made.len() } else { self.made.len() / 4 * 4 };
        let rest = self.made.split_off(ready);
        let place = Place { offset: self.done, ..place };
        self.done += ready as u64;
        Ok((place, std::mem::replace(&mut self.made, rest)))
    }

    fn requantize(&mut self, from: &UnitTensor, to: &UnitTensor, bytes: &[u8]) -> Result<(), GgufError> {
        if from.kind == to.kind {
            self.made.extend_from_slice(bytes);
            return Ok(());
        }
        self.rest.extend_from_slice(bytes);
        let row = (from.range.len / u64::from(from.rows.max(1))).max(1) as usize;
        let whole = self.rest.len() / row * row;
        requantize_rows((from.kind, to.kind), u64::from(from.cols), &self.rest[..whole], &mut self.made)?;
        self.rest.drain(..whole);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_gguf::synthetic::{Architecture, Synthetic};
    use potluck_gguf::{Model, Requantized, TensorType, join, parse};
    use potluck_model::{FileRange, ModelSpec};

    use super::*;

    fn open(file: &[u8]) -> (Model, UnitMap) {
        let model = join([parse(file).unwrap()]).unwrap();
        let units = ModelSpec::from_gguf(&model).unwrap().1;
        (model, units)
    }

    fn slice(file: &[u8], range: FileRange) -> &[u8] {
        &file[range.offset as usize..(range.offset + range.len) as usize]
    }

    /// The file that `cargo lab requantize` writes.
    fn requantized(model: &Model, file: &[u8], kind: TensorType) -> Vec<u8> {
        let plan = Requantized::new(model, kind).unwrap();
        let mut tensors = model.tensors.iter().zip(&plan.kinds);
        let next = |_: &_| {
            let (tensor, kind) = tensors.next().unwrap();
            let mut out = Vec::new();
            let bytes = &file[tensor.offset as usize..tensor.end() as usize];
            requantize_rows((tensor.kind, *kind), tensor.cols(), bytes, &mut out).unwrap();
            out
        };
        plan.writer.to_bytes(next).unwrap()
    }

    #[test]
    fn every_unit_gets_the_bytes_of_a_requantized_file() {
        for (from, kind) in [(TensorType::Q8_0, TensorType::Q4_0), (TensorType::Q4_0, TensorType::Q2_K)] {
            let model =
                Synthetic { architecture: Architecture::Qwen3Moe, hidden: 96, blocks: 2, ..Synthetic::default() };
            let file = model.with_type(from).to_bytes().unwrap();
            let (model, base) = open(&file);
            let expected = requantized(&model, &file, kind);
            let (_, of_file) = open(&expected);
            let own = base.requantized(kind).unwrap();
            let mut requantizer = Requantizer::new(&base, &own);
            for unit in base.units() {
                for (tensor, (old, new)) in base.tensors(unit).iter().zip(of_file.tensors(unit)).enumerate() {
                    let (mut offset, mut made) = (0, Vec::new());
                    // Pieces that end within rows, as those of a download do.
                    for piece in slice(&file, old.range).chunks(1000) {
                        let (place, bytes) = requantizer.push(Place { unit, tensor, offset }, piece).unwrap();
                        assert_eq!(place.offset, made.len() as u64, "{unit:?} {:?}", old.role);
                        assert!(place.offset.is_multiple_of(4), "pieces begin with a word");
                        made.extend(bytes);
                        offset += piece.len() as u64;
                    }
                    assert_eq!(made, slice(&expected, new.range), "{from} to {kind}: {unit:?} {:?}", old.role);
                }
            }
        }
    }
}
