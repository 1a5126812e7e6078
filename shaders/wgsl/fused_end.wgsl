// The end of a fused decode kernel: adds up the threads' sums in one tree, and stores the results.
#if NORM
    workgroupBarrier();
#repeat r $ROWS
    var squared_$r = 0.0;
    for (var m = 0u; m < CHUNK; m += TEAM) { squared_$r += slots_of_squares[$ru * CHUNK + m + lane]; }
#end
#endif
#if SHARES
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    sums[(($ru * $PAIRSu + $pu) * $HALVESu + $hu) * $THREADSu + local] = sum_$r_$p_$h;
#end
#end
#if NORM
    squares[$ru * $THREADSu + local] = squared_$r;
#endif
#end
    workgroupBarrier();
    for (var step = TEAM / 2u; step >= $SHUFFLEu; step = step >> 1u) {
        if (lane < step) {
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
            {
                let at = (($ru * $PAIRSu + $pu) * $HALVESu + $hu) * $THREADSu + local;
                sums[at] += sums[at + step];
            }
#end
#end
#if NORM
            squares[$ru * $THREADSu + local] += squares[$ru * $THREADSu + local + step];
#endif
#end
        }
        workgroupBarrier();
    }
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    sum_$r_$p_$h = sums[(($ru * $PAIRSu + $pu) * $HALVESu + $hu) * $THREADSu + local];
#end
#end
#if NORM
    squared_$r = squares[$ru * $THREADSu + local];
#endif
#end
#endif
#if SHUFFLES
    // The threads of a team are neighbours in a subgroup; the self-test proves it by comparing bits.
#repeat s $SHUFFLES
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    sum_$r_$p_$h += subgroupShuffleDown(sum_$r_$p_$h, $SHUFFLEu >> ($su + 1u));
#end
#end
#if NORM
    squared_$r += subgroupShuffleDown(squared_$r, $SHUFFLEu >> ($su + 1u));
#endif
#end
#end
#endif
    if (lane > 0u || !live) { return; }
#repeat r $ROWS
    if (first + $ru < params.n) {
        let at = (first + $ru) * params.y_stride;
#if NORM
        let scale = params.scale * (1.0 / sqrt(squared_$r / f32(4u * params.x_stride) + params.epsilon));
#endif
#if SCORED
        // As in `residual`.
        let scale = params.scale * (1.0 / (1.0 + exp(min(-scores[params.bias_0 + first + $ru], 80.0))));
#endif
#repeat p $PAIRS
        if (row_$p < params.rows) {
#if NORM
#repeat h $HALVES
            let sum_$h = sum_$r_$p_$h * scale;
#end
#else
#repeat h $HALVES
            let sum_$h = sum_$r_$p_$h;
#end
#endif
#if GATED
#if BIAS
            let up = sum_1 + bias[bias_at + params.bias_1 + row_$p];
            y[at + line_$p.y] = activated(sum_0 + bias[bias_at + line_$p.bias], up);
#else
            y[at + line_$p.y] = activated(sum_0, sum_1);
#endif
#else
#if EXPERT
#if BIAS
            y[at + line_$p.y] = sum_0 + bias[bias_at + line_$p.bias];
#else
            y[at + line_$p.y] = sum_0;
#endif
#else
#if NORM
#if BIAS
            y[at + line_$p.y] = fma(sum_$r_$p_0, scale, bias[line_$p.bias]);
#else
            y[at + line_$p.y] = sum_0;
#endif
#else
#if SCORED
            y[at + line_$p.y] = fma(sum_0, scale, y[at + line_$p.y]);
#else
            var result = sum_0;
#if BIAS
            result += bias[line_$p.bias];
#endif
            if (params.add != 0u) { result += y[at + line_$p.y]; }
            y[at + line_$p.y] = result;
#endif
#endif
#endif
#endif
        }
#end
    }
#end
}
