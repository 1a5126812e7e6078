//! Recurrences on the CPU.

use potluck_model::{RecurrentSpec, Rule, TensorRole};
use potluck_plan::{BlockIndex, WeightUnit};
use potluck_shaders::reference as kernels;

use super::Reference;

impl Reference {
    /// Adds the output of a block's recurrence to the hidden vector. It has no queries.
    pub(super) fn recur(&mut self, block: usize, r: &RecurrentSpec, x: &mut [f32]) -> Vec<f32> {
        let unit = WeightUnit::TokenMixer(BlockIndex(block as u16));
        let normed = self.before(unit, TensorRole::AttentionNorm, true, x);
        let inputs = r.inputs();
        let product = |(role, _): &(TensorRole, u32)| kernels::matvec(self.tensor(unit, *role), &normed);
        let row: Vec<f32> = inputs.iter().flat_map(product).collect();
        let mut state = std::mem::take(&mut self.states[block]);
        state.resize(r.state_values() as usize, 0.0);
        let mixed = self.mix(unit, r, &row, &mut state);
        self.states[block] = state;
        let out = kernels::matvec(self.tensor(unit, TensorRole::StateOutput), &mixed);
        self.add(unit, None, &out, x);
        Vec::new()
    }

    /// Convolution and rule of a position.
    fn mix(&self, unit: WeightUnit, r: &RecurrentSpec, row: &[f32], state: &mut [f64]) -> Vec<f32> {
        let channels = r.channels() as usize;
        let (tail, matrices) = state.split_at_mut(r.tail_values() as usize);
        let taps = self.tensor(unit, TensorRole::ConvTaps);
        let convolve = |tail: &mut [f64], input: &[f32]| {
            let mut past = tail.to_vec();
            let out = kernels::convolve(&mut past, taps, input);
            tail.copy_from_slice(&past);
            out
        };
        let silu = |v: f32| kernels::silu(f64::from(v)) as f32;
        let number = |role, head: usize| f64::from(self.tensor(unit, role)[head]);
        match &r.rule {
            Rule::ShortConv { .. } => {
                let (b, c, x) = (&row[..channels], &row[channels..2 * channels], &row[2 * channels..]);
                let input: Vec<f32> = b.iter().zip(x).map(|(b, x)| b * x).collect();
                convolve(tail, &input).iter().zip(c).map(|(v, c)| v * c).collect()
            }
            Rule::DeltaNet(net) => {
                let (dim, heads, key_heads) = (net.head_dim as usize, net.heads as usize, net.key_heads as usize);
                let qkv: Vec<f32> = convolve(tail, &row[..channels]).into_iter().map(silu).collect();
                let (gates, numbers) = row[channels..].split_at(heads * dim);
                let mut out = Vec::new();
                for head in 0..heads {
                    let each = heads / key_heads;
                    let (of, beta, alpha) = if net.grouped {
                        let beta = head / each * 2 * each + head % each;
                        (head / each, beta, beta + each)
                    } else {
                        (head % key_heads, head, heads + head)
                    };
                    let part = |at: usize| &qkv[at * dim..(at + 1) * dim];
                    let (query, key, value) = (part(of), part(key_heads + of), part(2 * key_heads + head));
                    let time = kernels::softplus(f64::from(numbers[alpha]) + number(TensorRole::TimeBias, head));
                    let fade = (number(TensorRole::DecayRate, head) * time).exp();
                    let beta = kernels::sigmoid(f64::from(numbers[beta]));
                    let state = &mut matrices[head * dim * dim..(head + 1) * dim * dim];
                    let epsilon = self.spec.norm_epsilon;
                    let read = kernels::delta(state, (key, query, value), (fade, beta), epsilon);
                    let normed = kernels::norm(&read, self.tensor(unit, TensorRole::StateNorm), epsilon);
                    out.extend(normed.iter().zip(&gates[head * dim..]).map(|(v, gate)| v * silu(*gate)));
                }
                out
            }
            Rule::StateSpace(space) => {
                let (dim, size, groups) = (space.head_dim as usize, space.state as usize, space.groups as usize);
                let (heads, inner) = (space.heads as usize, r.mixed() as usize);
                let bias = self.tensor(unit, TensorRole::ConvBias);
                let convolved = convolve(tail, &row[inner..inner + channels]);
                let xbc: Vec<f32> = convolved.iter().zip(bias).map(|(v, bias)| silu(v + bias)).collect();
                let mut out = Vec::new();
                for head in 0..heads {
                    let group = head / (heads / groups);
                    let shared = |at: usize| &xbc[inner + (at + group) * size..][..size];
                    let time = f64::from(row[inner + channels + head]) + number(TensorRole::TimeBias, head);
                    let time = kernels::softplus(time);
                    let fade = (number(TensorRole::DecayRate, head) * time).exp();
                    let state = &mut matrices[head * dim * size..(head + 1) * dim * size];
                    let value = &xbc[head * dim..(head + 1) * dim];
                    let how = (fade, time, number(TensorRole::Skip, head));
                    let read = kernels::space(state, (shared(0), shared(groups), value), how);
                    out.extend(read.iter().zip(&row[head * dim..]).map(|(v, gate)| v * silu(*gate)));
                }
                let gain = self.tensor(unit, TensorRole::StateNorm);
                let parts = out.chunks_exact(inner / groups).zip(gain.chunks_exact(inner / groups));
                parts.flat_map(|(part, gain)| kernels::norm(part, gain, self.spec.norm_epsilon)).collect()
            }
        }
    }
}
