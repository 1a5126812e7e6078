//! Generates a kernel's WGSL from its template and the definitions of the variant.

use super::Kernel;
use super::definitions::Definition;
use crate::Format;
use crate::preprocess::preprocess;

fn template(name: &str) -> Option<&'static str> {
    Some(match name {
        "weights" => include_str!("../../wgsl/weights.wgsl"),
        "activation" => include_str!("../../wgsl/activation.wgsl"),
        "floats" => include_str!("../../wgsl/formats/floats.wgsl"),
        "simple" => include_str!("../../wgsl/formats/simple.wgsl"),
        "k_quants" => include_str!("../../wgsl/formats/k_quants.wgsl"),
        "k_scales" => include_str!("../../wgsl/formats/k_scales.wgsl"),
        "four_bit" => include_str!("../../wgsl/formats/four_bit.wgsl"),
        "iq4_values" => include_str!("../../wgsl/formats/iq4_values.wgsl"),
        "e2m1" => include_str!("../../wgsl/formats/e2m1.wgsl"),
        "ternary" => include_str!("../../wgsl/formats/ternary.wgsl"),
        "codebooks" => include_str!("../../wgsl/formats/codebooks.wgsl"),
        "packed_formats" => include_str!("../../wgsl/formats/packed_formats.wgsl"),
        "grid" => include_str!("../../wgsl/grid.wgsl"),
        "numbers" => include_str!("../../wgsl/numbers.wgsl"),
        "kv_cache" => include_str!("../../wgsl/kv_cache.wgsl"),
        "rotation" => include_str!("../../wgsl/rotation.wgsl"),
        "runs" => include_str!("../../wgsl/runs.wgsl"),
        "conv" => include_str!("../../wgsl/conv.wgsl"),
        "recurrence" => include_str!("../../wgsl/recurrence.wgsl"),
        "scan" => include_str!("../../wgsl/scan.wgsl"),
        "scan_per_thread" => include_str!("../../wgsl/scan_per_thread.wgsl"),
        "query_gates" => include_str!("../../wgsl/query_gates.wgsl"),
        "gate_input" => include_str!("../../wgsl/gate_input.wgsl"),
        "product" => include_str!("../../wgsl/product.wgsl"),
        "lists" => include_str!("../../wgsl/lists.wgsl"),
        "embed" => include_str!("../../wgsl/embed.wgsl"),
        "norm" => include_str!("../../wgsl/norm.wgsl"),
        "matvec" => include_str!("../../wgsl/matvec.wgsl"),
        "matmul_per_thread" => include_str!("../../wgsl/matmul_per_thread.wgsl"),
        "quantize" => include_str!("../../wgsl/quantize.wgsl"),
        "halve" => include_str!("../../wgsl/halve.wgsl"),
        "matrix_any" => include_str!("../../wgsl/formats/matrix_any.wgsl"),
        "matrix_q4_k" => include_str!("../../wgsl/formats/matrix_q4_k.wgsl"),
        "matrix" => include_str!("../../wgsl/matrix.wgsl"),
        "packed" => include_str!("../../wgsl/packed.wgsl"),
        "matmul" => include_str!("../../wgsl/matmul.wgsl"),
        "sixteen" => include_str!("../../wgsl/sixteen.wgsl"),
        "fused" => include_str!("../../wgsl/fused.wgsl"),
        "fused_bindings" => include_str!("../../wgsl/fused_bindings.wgsl"),
        "fused_parts" => include_str!("../../wgsl/fused_parts.wgsl"),
        "fused_begin" => include_str!("../../wgsl/fused_begin.wgsl"),
        "fused_end" => include_str!("../../wgsl/fused_end.wgsl"),
        "fused_packed" => include_str!("../../wgsl/fused_packed.wgsl"),
        "staged_packed" => include_str!("../../wgsl/staged_packed.wgsl"),
        "q8_1" => include_str!("../../wgsl/q8_1.wgsl"),
        "dots" => include_str!("../../wgsl/dots.wgsl"),
        "units" => include_str!("../../wgsl/units.wgsl"),
        "units_q4_k" => include_str!("../../wgsl/units_q4_k.wgsl"),
        "units_q6_k" => include_str!("../../wgsl/units_q6_k.wgsl"),
        "units_any" => include_str!("../../wgsl/units_any.wgsl"),
        "wide_q4_k" => include_str!("../../wgsl/wide_q4_k.wgsl"),
        "wide_q6_k" => include_str!("../../wgsl/wide_q6_k.wgsl"),
        "wide_mxfp4" => include_str!("../../wgsl/wide_mxfp4.wgsl"),
        "split" => include_str!("../../wgsl/split.wgsl"),
        "splits" => include_str!("../../wgsl/splits.wgsl"),
        "merge" => include_str!("../../wgsl/merge.wgsl"),
        "groups_per_thread" => include_str!("../../wgsl/groups_per_thread.wgsl"),
        "groups" => include_str!("../../wgsl/groups.wgsl"),
        "scores" => include_str!("../../wgsl/scores.wgsl"),
        "norm_part" => include_str!("../../wgsl/norm_part.wgsl"),
        "residual" => include_str!("../../wgsl/residual.wgsl"),
        "beside" => include_str!("../../wgsl/beside.wgsl"),
        "glu" => include_str!("../../wgsl/glu.wgsl"),
        "choose" => include_str!("../../wgsl/choose.wgsl"),
        "expert_bias" => include_str!("../../wgsl/expert_bias.wgsl"),
        "scale_by" => include_str!("../../wgsl/scale_by.wgsl"),
        "mask_logits" => include_str!("../../wgsl/mask_logits.wgsl"),
        "bias_logits" => include_str!("../../wgsl/bias_logits.wgsl"),
        "log_sum_exp" => include_str!("../../wgsl/log_sum_exp.wgsl"),
        "scale_logits" => include_str!("../../wgsl/scale_logits.wgsl"),
        "rope" => include_str!("../../wgsl/rope.wgsl"),
        "rope_blocks" => include_str!("../../wgsl/rope_blocks.wgsl"),
        "attention" => include_str!("../../wgsl/attention.wgsl"),
        "flash" => include_str!("../../wgsl/flash.wgsl"),
        "router" => include_str!("../../wgsl/router.wgsl"),
        "choice" => include_str!("../../wgsl/choice.wgsl"),
        "experts_sum" => include_str!("../../wgsl/experts_sum.wgsl"),
        "route" => include_str!("../../wgsl/route.wgsl"),
        "norm_row" => include_str!("../../wgsl/norm_row.wgsl"),
        "row_sum" => include_str!("../../wgsl/row_sum.wgsl"),
        "combine" => include_str!("../../wgsl/combine.wgsl"),
        "segments" => include_str!("../../wgsl/segments.wgsl"),
        "top" => include_str!("../../wgsl/top.wgsl"),
        "sample" => include_str!("../../wgsl/sample.wgsl"),
        "peak" => include_str!("../../wgsl/peak.wgsl"),
        "stream" => include_str!("../../wgsl/stream.wgsl"),
        _ => return None,
    })
}

impl Kernel {
    /// The WGSL for a browser, which requires `enable subgroups`; naga rejects that line.
    pub fn browser_source(self) -> String {
        let enabled = if self.uses_subgroups() { "enable subgroups;\n" } else { "" };
        format!("{enabled}{}", self.source())
    }

    /// The WGSL as naga accepts it.
    pub fn source(self) -> String {
        if let Some(parts) = self.parts() {
            return super::joined::source(parts);
        }
        let Definition { template: name, params, mut values, .. } = self.definition();
        values.set("PARAMS", params);
        values.set("THREADS", self.threads());
        if let Some(at) = self.format().and_then(Format::codebook_at) {
            values.set("CODEBOOK_AT", at);
            values.set("CODEBOOKS", self.bindings().len());
        }
        let text = template(name).expect("every kernel names an existing template");
        preprocess(text, &values.into_definitions(), &template)
            .expect("templates are checked for every variant by a test")
    }
}
