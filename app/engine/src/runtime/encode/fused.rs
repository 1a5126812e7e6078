//! Decode with few dispatches: fuses products with the norm before them and the activation, bias or sum after them. If
//! the separate kernels must be used instead, a function that returns a `bool` returns false and records nothing.

use potluck_model::{Activation, AttentionSpec, ExpertsSpec, TensorRole};
use potluck_plan::{BlockIndex, KernelClass, WeightUnit};
use potluck_shaders::{Job, Kernel, joined_params, params};

use super::{Batch, Pairing};
use crate::runtime::core::Core;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{ExpertMatrix, ExpertPlaces, Layout, Place, Scratch, Segment};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::Recorder;
use crate::runtime::tensors::Shape;

/// Rows of a matrix, the offset of their results in an output vector, and their bias.
#[derive(Clone, Copy)]
struct Piece {
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
    pub gain: Option<&'a Slice>,
}

/// Byte range of one binding that covers some pieces: first byte and one past the last.
pub(super) fn span(pieces: impl Iterator<Item = Segment> + Clone) -> (u64, u64) {
    let first = pieces.clone().map(|segment| segment.offset).min().unwrap_or(0);
    (first, pieces.map(|segment| segment.offset + segment.bytes).max().unwrap_or(0))
}

/// How many of the first pieces one binding covers, and one product computes.
fn alike(pieces: &[Piece], limit: u64) -> usize {
    let Some(first) = pieces.first() else { return 0 };
    let alike = |piece: &&Piece| {
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

impl Core {
    /// The pieces of a matrix whose results start at `y`.
    fn pieces(place: &Place, y: u32, bias: Option<Segment>) -> impl Iterator<Item = Piece> {
        place.segments.iter().map(move |&segment| Piece {
            shape: place.shape,
            segment,
            y: y + segment.first_row,
            bias: bias.map(|bias| Segment { offset: bias.offset + u64::from(segment.first_row) * 4, ..bias }),
        })
    }

    /// Queries, keys and values from the hidden vectors.
    pub(super) fn fused_projection(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        parts: &[(TensorRole, TensorRole, u32)],
        gain: &Slice,
        (a, n): (&AttentionSpec, u32),
    ) -> Result<bool, EngineError> {
        let mut pieces = Vec::new();
        for &(role, bias, y) in parts {
            let bias = if a.qkv_bias { Some(self.place(layout, unit, bias)?.segments[0]) } else { None };
            pieces.extend(Self::pieces(self.place(layout, unit, role)?, y, bias));
        }
        let job = if a.qkv_bias { Job::NormedBias } else { Job::Normed };
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Qkv));
        let y_stride = a.projected();
        let vectors = Vectors { x: &x, rows: (0, n), y: &y, y_stride, gain: Some(gain) };
        Ok(self.fused(rec, job, &pieces, &vectors))
    }

    /// The inputs of a recurrence from the hidden vectors.
    pub(super) fn fused_inputs(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        parts: &[(TensorRole, u32)],
        gain: &Slice,
        (y_stride, n): (u32, u32),
    ) -> Result<bool, EngineError> {
        let mut pieces = Vec::new();
        for &(role, y) in parts {
            pieces.extend(Self::pieces(self.place(layout, unit, role)?, y, None));
        }
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Qkv));
        let vectors = Vectors { x: &x, rows: (0, n), y: &y, y_stride, gain: Some(gain) };
        Ok(self.fused(rec, Job::Normed, &pieces, &vectors))
    }

    /// A product added to the output.
    pub(super) fn fused_addition(&mut self, rec: &mut Recorder, place: &Place, vectors: &Vectors<'_>) -> bool {
        let pieces: Vec<Piece> = Self::pieces(place, 0, None).collect();
        self.fused(rec, Job::Added, &pieces, vectors)
    }

    /// Logits of `n` hidden vectors, starting at `first`.
    pub(super) fn fused_logits(&mut self, rec: &mut Recorder, place: &Place, gain: &Slice, rows: (u32, u32)) -> bool {
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Logits));
        let pieces: Vec<Piece> = Self::pieces(place, 0, None).collect();
        let vectors = Vectors { x: &x, rows, y: &y, y_stride: self.spec.vocabulary, gain: Some(gain) };
        self.fused(rec, Job::Normed, &pieces, &vectors)
    }

    /// Records a product of all pieces. Alike pieces that one binding covers share a dispatch.
    fn fused(&mut self, rec: &mut Recorder, job: Job, pieces: &[Piece], vectors: &Vectors<'_>) -> bool {
        let n = vectors.rows.1 as usize;
        if pieces.iter().any(|piece| self.profile.fused(piece.shape.format, job, n).is_none()) {
            return false;
        }
        let limit = self.gpu.capabilities().limits.max_storage_buffer_binding_size;
        let mut rest = pieces;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(alike(rest, limit));
            let (next, after) = later.split_at(alike(later, limit));
            if n == 1 && job == Job::Normed && self.joined_dispatch(rec, [now, next], vectors) {
                rest = after;
                continue;
            }
            self.fused_dispatch(rec, job, now, vectors);
            rest = later;
        }
        true
    }

    /// Two products of alike pieces each in one dispatch, if there is a kernel for their formats.
    fn joined_dispatch(&mut self, rec: &mut Recorder, [now, next]: [&[Piece]; 2], vectors: &Vectors<'_>) -> bool {
        let (Some(first), Some(second)) = (now.first(), next.first()) else { return false };
        if rec.is_apart() || first.shape.cols != second.shape.cols {
            return false;
        }
        let rows: u32 = now.iter().map(|piece| piece.segment.rows).sum();
        let size = (rows, first.shape.cols);
        let Some(kernel) = self.profile.joined(first.shape.format, second.shape.format, size) else { return false };
        let Some(parts) = kernel.parts() else { return false };
        let (one, weights) = self.pieces_params(parts[0], Job::Normed, now, vectors);
        let (two, others) = self.pieces_params(parts[1], Job::Normed, next, vectors);
        let mut bindings = vec![&weights, vectors.x, vectors.y];
        bindings.extend(vectors.gain);
        bindings.push(&others);
        let groups = [&one, &two].map(|params| params.rows.div_ceil(kernel.matrix_rows()));
        rec.dispatch_bytes(&mut self.tools(), kernel, &bindings, &joined_params(&one, &two), groups.iter().sum(), 1);
        rec.cost(now.iter().chain(next).map(|piece| piece.segment.bytes).sum());
        true
    }

    fn fused_dispatch(&mut self, rec: &mut Recorder, job: Job, pieces: &[Piece], vectors: &Vectors<'_>) {
        let shape = pieces[0].shape;
        let (_, n) = vectors.rows;
        let rows = pieces.iter().map(|piece| piece.segment.rows).sum();
        let Some(kernel) = self.profile.fused(shape.format, job, n as usize) else { return };
        let kernel = self.profile.tuned_variant(kernel, rows, shape.cols);
        let Kernel::Fused { rows: at_once, .. } = kernel else { return };
        let (params, weights) = self.pieces_params(kernel, job, pieces, vectors);
        let (bias_from, bias_to) = span(pieces.iter().filter_map(|piece| piece.bias));
        let biases = pieces[0].bias.map(|bias| self.memory.slice(bias.key, bias_from, bias_to - bias_from));
        let mut bindings = vec![&weights, vectors.x, vectors.y];
        bindings.extend(vectors.gain);
        bindings.extend(&biases);
        let (x, z) = (params.rows.div_ceil(kernel.matrix_rows()), n.div_ceil(u32::from(at_once)));
        rec.dispatch(&mut self.tools(), kernel, &bindings, &params, x, z);
        rec.cost(pieces.iter().map(|piece| piece.segment.bytes).sum::<u64>() * u64::from(z));
    }

    /// Kernel parameters of alike pieces, and the binding that covers them.
    fn pieces_params(
        &self,
        kernel: Kernel,
        job: Job,
        pieces: &[Piece],
        vectors: &Vectors<'_>,
    ) -> (params::Fused, Slice) {
        let shape = pieces[0].shape;
        let (x_first, n) = vectors.rows;
        let rows = |count: usize| pieces.iter().take(count).map(|piece| piece.segment.rows).sum::<u32>();
        let (from, to) = span(pieces.iter().map(|piece| piece.segment));
        let (bias_from, _) = span(pieces.iter().filter_map(|piece| piece.bias));
        let base = |i: usize| pieces.get(i).map_or(0, |piece| (piece.segment.offset - from) as u32);
        let y = |i: usize| pieces.get(i).map_or(0, |piece| piece.y);
        let bias =
            |i: usize| pieces.get(i).and_then(|p| p.bias).map_or(0, |bias| ((bias.offset - bias_from) / 4) as u32);
        let params = params::Fused {
            rows: rows(3),
            row_bytes: shape.row_bytes,
            cols: shape.cols,
            units: shape.cols.div_ceil(kernel.unit_values()),
            n,
            x_stride: shape.cols / 4,
            x_first,
            y_stride: vectors.y_stride,
            add: u32::from(job == Job::Added),
            epsilon: self.spec.norm_epsilon,
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
        (params, self.memory.slice(pieces[0].segment.key, from, to - from))
    }

    /// `silu(gate) · up` of the hidden vectors, into `Scratch::Up`.
    pub(super) fn fused_gate(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        unit: WeightUnit,
        gain: &Slice,
        n: u32,
    ) -> Result<bool, EngineError> {
        let (gate, up) = (self.place(layout, unit, TensorRole::Gate)?, self.place(layout, unit, TensorRole::Up)?);
        let ([first], [second]) = (&gate.segments[..], &up.segments[..]) else { return Ok(false) };
        let (from, to) = span([*first, *second].into_iter());
        let limit = self.gpu.capabilities().limits.max_storage_buffer_binding_size;
        if gate.shape != up.shape || first.key != second.key || to - from > limit {
            return Ok(false);
        }
        let shape = gate.shape;
        let Some(kernel) = self.profile.fused(shape.format, Job::Gated, n as usize) else { return Ok(false) };
        let kernel = self.profile.tuned_variant(kernel, shape.rows, shape.cols);
        let Kernel::Fused { rows: at_once, .. } = kernel else { return Ok(false) };
        let params = params::Fused {
            n,
            y_stride: shape.rows,
            base_0: (first.offset - from) as u32,
            up: (second.offset as u32).wrapping_sub(first.offset as u32),
            ..self.fused_params(kernel, shape)
        };
        let weights = self.memory.slice(first.key, from, to - from);
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Up));
        let (groups, z) = (shape.rows.div_ceil(kernel.matrix_rows()), n.div_ceil(u32::from(at_once)));
        rec.dispatch(&mut self.tools(), kernel, &[&weights, &x, &y, gain], &params, groups, z);
        rec.cost(2 * shape.bytes() * u64::from(z));
        Ok(true)
    }

    /// Kernel parameters of one matrix.
    fn fused_params(&self, kernel: Kernel, shape: Shape) -> params::Fused {
        params::Fused {
            rows: shape.rows,
            row_bytes: shape.row_bytes,
            cols: shape.cols,
            units: shape.cols.div_ceil(kernel.unit_values()),
            x_stride: shape.cols / 4,
            epsilon: self.spec.norm_epsilon,
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
    pub(super) fn fused_scored(&mut self, rec: &mut Recorder, place: &Place, (x, first): (&Slice, u32), n: u32) {
        let shape = place.shape;
        let Some(kernel) = self.profile.fused(shape.format, Job::Scored, n as usize) else { return };
        let kernel = self.profile.tuned_variant(kernel, shape.rows, shape.cols);
        let (Kernel::Fused { rows: at_once, .. }, [segment]) = (kernel, &place.segments[..]) else { return };
        let scale = self.spec.scales.residual;
        let params =
            params::Fused { n, y_stride: shape.rows, add: 1, scale, bias_0: first, ..self.fused_params(kernel, shape) };
        let weights = self.memory.slice(segment.key, segment.offset, segment.bytes);
        let (y, scores) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Scores));
        let (groups, z) = (shape.rows.div_ceil(kernel.matrix_rows()), n.div_ceil(u32::from(at_once)));
        rec.dispatch(&mut self.tools(), kernel, &[&weights, x, &y, &scores], &params, groups, z);
        rec.cost(shape.bytes() * u64::from(z));
    }

    /// Scores of the experts from the hidden vectors; those of the network beside them follow.
    pub(super) fn fused_scores(
        &mut self,
        rec: &mut Recorder,
        (router, beside): (&Place, Option<&Place>),
        gain: &Slice,
        n: u32,
    ) -> bool {
        let (x, y) = (self.scratch(Scratch::Hidden), self.scratch(Scratch::Scores));
        let beside = beside.into_iter().flat_map(|place| Self::pieces(place, router.shape.rows, None));
        let pieces: Vec<Piece> = Self::pieces(router, 0, None).chain(beside).collect();
        let vectors = Vectors { x: &x, rows: (0, n), y: &y, y_stride: router.shape.rows, gain: Some(gain) };
        self.fused(rec, Job::Normed, &pieces, &vectors)
    }

    /// Networks of the chosen experts, from the normed vectors into `Scratch::Parts`.
    pub(super) fn fused_experts(&mut self, rec: &mut Recorder, pairing: &Pairing<'_>, n: u32) -> bool {
        let (gate, up, down) = (&pairing.places.gate, &pairing.places.up, &pairing.places.down);
        if pairing.activation != Activation::SwiGlu || pairing.places.biases.is_some() {
            return false;
        }
        let together = gate.shape == up.shape && gate.chunks == up.chunks;
        let gated = self.profile.fused(gate.shape.format, Job::GatedExpert, 1);
        let product = self.profile.fused(down.shape.format, Job::ExpertDown, 1);
        let (Some(gated), Some(product), true) = (gated, product, together) else { return false };
        let [normed, inner, parts] = [Scratch::Normed, Scratch::Up, Scratch::Parts].map(|name| self.scratch(name));
        let pairs = n * pairing.used;
        self.fused_expert_product(rec, pairing, (gated, gate, pairing.used), pairs, (&normed, &inner));
        self.fused_expert_product(rec, pairing, (product, down, 1), pairs, (&inner, &parts));
        true
    }

    /// Whether one dispatch may compute the last products of a token's experts, their weighted sum and its addition.
    pub(crate) fn can_sum(experts: &ExpertsSpec, places: &ExpertPlaces) -> bool {
        let (gate, up, down) = (&places.gate, &places.up, &places.down);
        let together = gate.shape == up.shape && gate.chunks == up.chunks && down.chunks.len() == 1;
        let plain = experts.activation == Activation::SwiGlu && !experts.biases && !experts.apart;
        together && plain && !experts.weigh_input && experts.used <= Kernel::MAX_SUMMED
    }

    /// Networks of the chosen experts and their weighted sum, added to the hidden vectors.
    pub fn fused_sum(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        block: BlockIndex,
        batch: Batch,
    ) -> Result<bool, EngineError> {
        let pairing = self.pairing(layout, block)?;
        if batch.class != KernelClass::Decode || !Self::can_sum(self.expert_spec(block)?, pairing.places) {
            return Ok(false);
        }
        let (gate, down, used) = (&pairing.places.gate, &pairing.places.down, pairing.used);
        let gated = self.profile.fused(gate.shape.format, Job::GatedExpert, 1);
        let summed = self.profile.fused(down.shape.format, Job::ExpertSum, 1);
        // Experts elsewhere are computed without the sum, by kernels that give the bits of this one.
        let alone = self.profile.fused(down.shape.format, Job::ExpertDown, 1);
        let (Some(gated), Some(summed), Some(_)) = (gated, summed, alone) else { return Ok(false) };
        let [normed, inner, hidden] = [Scratch::Normed, Scratch::Up, Scratch::Hidden].map(|name| self.scratch(name));
        self.fused_expert_product(rec, &pairing, (gated, gate, used), batch.n * used, (&normed, &inner));
        self.fused_expert_product(rec, &pairing, (summed, down, used), batch.n, (&inner, &hidden));
        Ok(true)
    }

    /// A product of each chosen expert: one matrix, or gate and up; `shared` pairs have the same input vector. Or the sum
    /// of `shared` products for each of `pairs` tokens.
    fn fused_expert_product(
        &mut self,
        rec: &mut Recorder,
        pairing: &Pairing<'_>,
        (kernel, matrix, shared): (Kernel, &ExpertMatrix, u32),
        pairs: u32,
        (x, y): (&Slice, &Slice),
    ) {
        let shape = matrix.shape;
        let kernel = self.profile.tuned_variant(kernel, shape.rows, shape.cols);
        let (slots, chosen) = (self.slot_table(pairing), self.scratch(Scratch::Chosen));
        let gates = self.scratch(Scratch::Gates);
        let sums = matches!(kernel, Kernel::Fused { job: Job::ExpertSum, .. });
        let matrices = match kernel {
            Kernel::Fused { job: Job::GatedExpert, .. } => 2,
            _ if sums => u64::from(shared),
            _ => 1,
        };
        for &(slot_first, slot_count, key) in &matrix.chunks {
            let params = params::Fused {
                n: pairs,
                experts: pairing.experts,
                used: shared,
                slot_first,
                slot_count,
                expert_bytes: matrix.stride as u32,
                base_0: matrix.inside as u32,
                up: (pairing.places.up.inside as u32).wrapping_sub(matrix.inside as u32),
                y_stride: shape.rows,
                scale: self.spec.scales.residual,
                ..self.fused_params(kernel, shape)
            };
            let weights = self.memory.whole(key);
            let mut bindings = vec![&weights, x, y, &slots, &chosen];
            bindings.extend(sums.then_some(&gates));
            let groups = shape.rows.div_ceil(kernel.matrix_rows());
            rec.dispatch(&mut self.tools(), kernel, &bindings, &params, groups, pairs);
            rec.cost(matrices * shape.bytes() * u64::from(pairs));
        }
    }
}
