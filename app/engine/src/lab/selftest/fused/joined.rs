//! Test cases for two products of one vector in one dispatch.

use potluck_shaders::{Format, Job, Kernel, joined_params, params, reference};

use super::{normed, products, sizes};
use crate::lab::selftest::data::{Matrices, Random};
use crate::lab::selftest::{Case, Expected};

/// Values of all results of [`products`] with one matrix.
const RESULTS: u32 = 9 * 41;

/// Two products in one dispatch: the one that leads is the case of the fused kernel, and its results come first.
pub fn joined(kernel: Kernel, m: &Matrices<'_>, lead: usize) -> Case {
    let parts = kernel.parts().expect("the kernel is joined");
    let formats = parts.map(|part| part.format().expect("a product has a format"));
    let [first, second] = [lead, 1 - lead];
    let mut case = products(parts[first], formats[first], m, 1, Job::Normed);
    let Expected::Floats(expected, _) = &mut case.expected else { return case };
    let w = m.weights(&mut Random(15), formats[second], 37);
    let cols = w.cols as usize;
    let [x, gain] = [1, 3].map(|binding| bytemuck::pod_collect_to_vec::<u8, f32>(&case.probe.bindings[binding]));
    let before = expected.len();
    expected.resize(2 * before, 0.0);
    for (y, x) in expected[before..].chunks_exact_mut(41).zip(x.chunks_exact(cols).skip(1)) {
        y[..37].copy_from_slice(&reference::matvec(&w.values, &normed(x, &gain)));
    }
    case.probe.bindings[2].resize(8 * before, 0);
    let its: params::Fused = bytemuck::pod_read_unaligned(&case.probe.params);
    let other = params::Fused { n: 9, x_first: 1, y_stride: 41, y_0: RESULTS, ..sizes(parts[second], &w) };
    let mut weights = [std::mem::take(&mut case.probe.bindings[0]), w.bytes];
    let mut both = [its, other];
    if lead == 1 {
        weights.reverse();
        both.reverse();
    }
    let [one, two] = weights;
    case.probe.bindings[0] = one;
    case.probe.bindings.push(two);
    case.probe.params = joined_params(&both[0], &both[1]);
    case.probe.kernel = kernel;
    case.probe.x = 2 * 37u32.div_ceil(kernel.matrix_rows());
    case
}

/// The format of the product that leads in a case of [`joined`], and whether its vectors are quantized.
pub fn lead(case: &Case) -> Option<(Format, bool)> {
    let parts = case.probe.kernel.parts()?;
    let first: params::Fused = bytemuck::pod_read_unaligned(case.probe.params.get(..size_of::<params::Fused>())?);
    let lead = parts[usize::from(first.y_0 == RESULTS)];
    Some((lead.format()?, lead.quantizes()))
}
