//! Decode with few dispatches: fuses products with the norm before them and the activation, bias or sum after them. If
//! the separate kernels must be used instead, a function that returns a `bool` returns false and records nothing.

use potluck_model::{Activation, AttentionSpec, ExpertsSpec, TensorRole};
use potluck_plan::WeightUnit;
use potluck_shaders::{Job, Kernel, joined_params, params};

use super::Encoder;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{Place, Scratch, Segment};
use crate::runtime::memory::Slice;
use crate::runtime::tensors::Shape;

/// Rows of a matrix, the offset of their results in an output vector, and their bias.
#[derive(Clone, Copy)]
struct MatrixPiece {
    shape: Shape,
    segment: Segment,
    y: u32,
    bias: Option<Segment>,
}

/// Input and output vectors of a product.
pub(super) struct Vectors<'a> {
    pub x: &'a Slice,
    /// First vector and number of vectors.
    pub rows: (u32, u32),
    pub y: &'a Slice,
    pub y_stride: u32,
    /// Gain of a norm of the input, and a factor of the normalized vectors.
    pub gain: Option<(&'a Slice, f32)>,
}

/// What a product adds to: the output, a bias of all rows, both or none.
pub(super) struct Sum<'a> {
    pub add: bool,
    pub bias: Option<&'a Slice>,
    /// Where the results of the first row start in an output vector.
    pub offset: u32,
}

/// The fused job of a network's gate and up, after a norm.
pub(crate) fn gate_job(activation: Activation) -> Option<Job> {
    match activation {
        Activation::SwiGlu => Some(Job::Gated),
        Activation::GeGlu => Some(Job::GatedGelu),
        Activation::ClampedSwiGlu => None,
    }
}

/// Byte range of one binding that covers some pieces: first byte and one past the last.
pub(super) fn span(pieces: impl Iterator<Item = Segment> + Clone) -> (u64, u64) {
    let first = pieces.clone().map(|segment| segment.offset).min().unwrap_or(0);
    (first, pieces.map(|segment| segment.offset + segment.bytes).max().unwrap_or(0))
}

impl Sum<'_> {
    /// Nothing.
    pub const NONE: Self = Self { add: false, bias: None, offset: 0 };
}

/// How many of the first pieces one binding covers, and one product computes.
fn alike(pieces: &[MatrixPiece], limit: u64) -> usize {
    let Some(first) = pieces.first() else { return 0 };
    let alike = |piece: &&MatrixPiece| {
        piece.segment.key == first.segment.key
            && (piece.shape.format, piece.shape.cols) == (first.shape.format, first.shape.cols)
            && piece.bias.map(|bias| bias.key) == first.bias.map(|bias| bias.key)
    };
    let mut count = pieces.iter().take(3).take_while(alike).count();
    let bytes = |count: usize| {
        let (from, to) = span(pieces[..count].iter().map(|piece| piece.segment));
        to - from
    };
    while count > 1 && bytes(count) > limit {
        count -= 1;
    }
    count
}

impl Encoder<'_> {
    /// The pieces of a matrix whose results start at `y`.
    fn pieces(place: &Place, y: u32, bias: Option<Segment>) -> impl Iterator<Item = MatrixPiece> {
        place.segments.iter().map(move |&segment| MatrixPiece {
            shape: place.shape,
            segment,
            y: y + segment.first_row,
            bias: bias.map(|bias| Segment { offset: bias.offset + u64::from(segment.first_row) * 4, ..bias }),
        })
    }

    /// Queries, keys and values from the hidden vectors.
    pub(super) fn fused_projection(
        &mut self,
        unit: WeightUnit,
        parts: &[(TensorRole, TensorRole, u32)],
        gain: &Slice,
        a: &AttentionSpec,
        n: u32,
    ) -> Result<bool, EngineError> {
        let mut pieces = Vec::new();
        for &(role, bias, y) in parts {
            let bias = if a.qkv_bias { Some(self.model.place(unit, bias)?.segments[0]) } else { None };
            pieces.extend(Self::pieces(self.model.place(unit, role)?, y, bias));
        }
        let job = if a.qkv_bias { Job::NormedBias } else { Job::Normed };
        let (x, y) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Qkv));
        let y_stride = a.projected();
        let vectors = Vectors { x: &x, rows: (0, n), y: &y, y_stride, gain: Some((gain, 1.0)) };
        Ok(self.fused(job, &pieces, &vectors, &Sum::NONE))
    }

    /// The inputs of a recurrence from the hidden vectors.
    pub(super) fn fused_inputs(
        &mut self,
        unit: WeightUnit,
        parts: &[(TensorRole, u32)],
        gain: &Slice,
        y_stride: u32,
        n: u32,
    ) -> Result<bool, EngineError> {
        let mut pieces = Vec::new();
        for &(role, y) in parts {
            pieces.extend(Self::pieces(self.model.place(unit, role)?, y, None));
        }
        let (x, y) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Qkv));
        let vectors = Vectors { x: &x, rows: (0, n), y: &y, y_stride, gain: Some((gain, 1.0)) };
        Ok(self.fused(Job::Normed, &pieces, &vectors, &Sum::NONE))
    }

    /// A product, perhaps with a bias or added to the output.
    pub(super) fn fused_product(&mut self, place: &Place, vectors: &Vectors<'_>, sum: &Sum<'_>) -> bool {
        let pieces: Vec<MatrixPiece> = Self::pieces(place, sum.offset, None).collect();
        let job = if sum.bias.is_some() { Job::AddedBias } else { Job::Added };
        self.fused(job, &pieces, vectors, sum)
    }

    /// Logits of `n` hidden vectors, starting at `first`.
    pub(super) fn fused_logits(&mut self, place: &Place, gain: &Slice, rows: (u32, u32)) -> bool {
        let (x, y) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Logits));
        let pieces: Vec<MatrixPiece> = Self::pieces(place, 0, None).collect();
        let vectors = Vectors { x: &x, rows, y: &y, y_stride: self.model.spec.vocabulary, gain: Some((gain, 1.0)) };
        self.fused(Job::Normed, &pieces, &vectors, &Sum::NONE)
    }

    /// Records a product of all pieces. Alike pieces that one binding covers share a dispatch.
    fn fused(&mut self, job: Job, pieces: &[MatrixPiece], vectors: &Vectors<'_>, sum: &Sum<'_>) -> bool {
        let n = vectors.rows.1 as usize;
        if pieces.iter().any(|piece| self.model.profile.fused(piece.shape.format, job, n).is_none()) {
            return false;
        }
        let limit = self.model.gpu.capabilities().limits.max_storage_buffer_binding_size;
        let mut rest = pieces;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(alike(rest, limit));
            let (next, after) = later.split_at(alike(later, limit));
            if n == 1 && job == Job::Normed && self.joined_dispatch([now, next], vectors) {
                rest = after;
                continue;
            }
            self.fused_dispatch(job, now, vectors, sum);
            rest = later;
        }
        true
    }

    /// Two products of alike pieces each in one dispatch, if there is a kernel for their formats.
    fn joined_dispatch(&mut self, [now, next]: [&[MatrixPiece]; 2], vectors: &Vectors<'_>) -> bool {
        let (Some(first), Some(second)) = (now.first(), next.first()) else { return false };
        if self.rec.is_apart() || first.shape.cols != second.shape.cols {
            return false;
        }
        let rows: u32 = now.iter().map(|piece| piece.segment.rows).sum();
        let formats = (first.shape.format, second.shape.format);
        let Some(kernel) = self.model.profile.joined(formats, rows, first.shape.cols) else {
            return false;
        };
        let Some(parts) = kernel.parts() else { return false };
        let (one, weights) = self.pieces_params(parts[0], false, now, vectors);
        let (two, others) = self.pieces_params(parts[1], false, next, vectors);
        let mut bindings = vec![&weights, vectors.x, vectors.y];
        bindings.extend(vectors.gain.map(|(gain, _)| gain));
        bindings.push(&others);
        let groups = [&one, &two].map(|params| params.rows.div_ceil(kernel.matrix_rows()));
        self.dispatch_bytes(kernel, &bindings, &joined_params(&one, &two), groups.iter().sum(), 1);
        self.rec.cost(now.iter().chain(next).map(|piece| piece.segment.bytes).sum());
        true
    }

    fn fused_dispatch(&mut self, job: Job, pieces: &[MatrixPiece], vectors: &Vectors<'_>, sum: &Sum<'_>) {
        let shape = pieces[0].shape;
        let (_, n) = vectors.rows;
        let rows = pieces.iter().map(|piece| piece.segment.rows).sum();
        let Some(kernel) = self.model.profile.fused(shape.format, job, n as usize) else { return };
        let kernel = self.model.profile.tuned_variant(kernel, rows, shape.cols);
        let Kernel::Fused { rows: at_once, .. } = kernel else { return };
        let (params, weights) = self.pieces_params(kernel, sum.add, pieces, vectors);
        let (bias_from, bias_to) = span(pieces.iter().filter_map(|piece| piece.bias));
        let biases = pieces[0].bias.map(|bias| self.model.memory.slice(bias.key, bias_from, bias_to - bias_from));
        let mut bindings = vec![&weights, vectors.x, vectors.y];
        bindings.extend(vectors.gain.map(|(gain, _)| gain));
        bindings.extend(biases.as_ref().or(sum.bias));
        let (x, z) = (params.rows.div_ceil(kernel.matrix_rows()), n.div_ceil(u32::from(at_once)));
        self.dispatch(kernel, &bindings, &params, x, z);
        self.rec.cost(pieces.iter().map(|piece| piece.segment.bytes).sum::<u64>() * u64::from(z));
    }

    /// Kernel parameters of alike pieces, and the binding that covers them.
    fn pieces_params(
        &self,
        kernel: Kernel,
        add: bool,
        pieces: &[MatrixPiece],
        vectors: &Vectors<'_>,
    ) -> (params::Fused, Slice) {
        let shape = pieces[0].shape;
        let (x_first, n) = vectors.rows;
        let rows = |count: usize| pieces.iter().take(count).map(|piece| piece.segment.rows).sum::<u32>();
        let (from, to) = span(pieces.iter().map(|piece| piece.segment));
        let (bias_from, _) = span(pieces.iter().filter_map(|piece| piece.bias));
        let base = |i: usize| pieces.get(i).map_or(0, |piece| (piece.segment.offset - from) as u32);
        let y = |i: usize| pieces.get(i).map_or(0, |piece| piece.y);
        // A bias of all rows is bound as a whole.
        let bias = |i: usize| match pieces.get(i) {
            Some(MatrixPiece { bias: Some(bias), .. }) => ((bias.offset - bias_from) / 4) as u32,
            Some(piece) => piece.segment.first_row,
            None => 0,
        };
        let params = params::Fused {
            rows: rows(3),
            row_bytes: shape.row_bytes,
            cols: shape.cols,
            units: shape.cols.div_ceil(kernel.unit_values()),
            n,
            x_stride: shape.cols / 4,
            x_first,
            y_stride: vectors.y_stride,
            add: u32::from(add),
            scale: vectors.gain.map_or(1.0, |(_, factor)| factor),
            epsilon: self.model.spec.norm_epsilon,
            base_0: base(0),
            base_1: base(1),
            base_2: base(2),
            end_0: rows(1),
            end_1: rows(2),
            y_0: y(0),
            y_1: y(1),
            y_2: y(2),
            bias_0: bias(0),
            bias_1: bias(1),
            bias_2: bias(2),
            ..Default::default()
        };
        (params, self.model.memory.slice(pieces[0].segment.key, from, to - from))
    }

    /// `activation(gate) · up` of the hidden vectors, into `Scratch::Up`.
    pub(super) fn fused_gate(
        &mut self,
        unit: WeightUnit,
        activation: Activation,
        gain: &Slice,
        n: u32,
    ) -> Result<bool, EngineError> {
        let Some(job) = gate_job(activation) else { return Ok(false) };
        let (gate, up) = (self.model.place(unit, TensorRole::Gate)?, self.model.place(unit, TensorRole::Up)?);
        let ([first], [second]) = (&gate.segments[..], &up.segments[..]) else { return Ok(false) };
        let (from, to) = span([*first, *second].into_iter());
        let limit = self.model.gpu.capabilities().limits.max_storage_buffer_binding_size;
        if gate.shape != up.shape || first.key != second.key || to - from > limit {
            return Ok(false);
        }
        let shape = gate.shape;
        let Some(kernel) = self.model.profile.fused(shape.format, job, n as usize) else { return Ok(false) };
        let kernel = self.model.profile.tuned_variant(kernel, shape.rows, shape.cols);
        let Kernel::Fused { rows: at_once, .. } = kernel else { return Ok(false) };
        let params = params::Fused {
            n,
            y_stride: shape.rows,
            base_0: (first.offset - from) as u32,
            up: (second.offset as u32).wrapping_sub(first.offset as u32),
            ..self.fused_params(kernel, shape)
        };
        let weights = self.model.memory.slice(first.key, from, to - from);
        let (x, y) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Up));
        let (groups, z) = (shape.rows.div_ceil(kernel.matrix_rows()), n.div_ceil(u32::from(at_once)));
        self.dispatch(kernel, &[&weights, &x, &y, gain], &params, groups, z);
        self.rec.cost(2 * shape.bytes() * u64::from(z));
        Ok(true)
    }

    /// Kernel parameters of one matrix.
    pub(super) fn fused_params(&self, kernel: Kernel, shape: Shape) -> params::Fused {
        params::Fused {
            rows: shape.rows,
            row_bytes: shape.row_bytes,
            cols: shape.cols,
            units: shape.cols.div_ceil(kernel.unit_values()),
            x_stride: shape.cols / 4,
            epsilon: self.model.spec.norm_epsilon,
            scale: 1.0,
            end_0: shape.rows,
            end_1: shape.rows,
            ..Default::default()
        }
    }

    /// Whether the output of a network beside the experts is added by its last product, which reads the score of each vector.
    pub(crate) fn can_score(experts: &ExpertsSpec) -> bool {
        let gated = experts.shared.is_some_and(|shared| shared.gated) && !experts.apart;
        gated && experts.activation == Activation::SwiGlu && !experts.router.bias && !experts.router.own_norm
    }

    /// The last product of a network beside the experts, times the sigmoid of each vector's score, added to the hidden
    /// vectors. The scores begin with number `first`.
    pub(super) fn fused_scored(&mut self, place: &Place, x: &Slice, first: u32, n: u32) {
        let shape = place.shape;
        let Some(kernel) = self.model.profile.fused(shape.format, Job::Scored, n as usize) else { return };
        let kernel = self.model.profile.tuned_variant(kernel, shape.rows, shape.cols);
        let (Kernel::Fused { rows: at_once, .. }, [segment]) = (kernel, &place.segments[..]) else { return };
        let scale = self.model.spec.scales.residual;
        let params =
            params::Fused { n, y_stride: shape.rows, add: 1, scale, bias_0: first, ..self.fused_params(kernel, shape) };
        let weights = self.model.memory.slice(segment.key, segment.offset, segment.bytes);
        let (y, scores) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Scores));
        let (groups, z) = (shape.rows.div_ceil(kernel.matrix_rows()), n.div_ceil(u32::from(at_once)));
        self.dispatch(kernel, &[&weights, x, &y, &scores], &params, groups, z);
        self.rec.cost(shape.bytes() * u64::from(z));
    }

    /// Scores of the experts from the hidden vectors, normalized and multiplied by a factor; those of the network beside
    /// them follow.
    pub(super) fn fused_scores(
        &mut self,
        router: &Place,
        beside: Option<&Place>,
        bias: Option<&Slice>,
        gain: (&Slice, f32),
        n: u32,
    ) -> bool {
        let (x, y) = (self.model.scratch(Scratch::Hidden), self.model.scratch(Scratch::Scores));
        let beside = beside.into_iter().flat_map(|place| Self::pieces(place, router.shape.rows, None));
        let pieces: Vec<MatrixPiece> = Self::pieces(router, 0, None).chain(beside).collect();
        let vectors = Vectors { x: &x, rows: (0, n), y: &y, y_stride: router.shape.rows, gain: Some(gain) };
        let job = if bias.is_some() { Job::NormedBias } else { Job::Normed };
        self.fused(job, &pieces, &vectors, &Sum { bias, ..Sum::NONE })
    }
}
