// The beginning of a fused decode kernel: which rows and vectors are whose.
    let lane = local % TEAM;
    let team = local / TEAM;
    let tile = group.x + group.y * groups.x;
    let chunks = (params.units + $UNITSu * TEAM - 1u) / ($UNITSu * TEAM);
#repeat p $PAIRS
    let row_$p = $PAIRSu * (tile * ($THREADSu / TEAM) + team) + $pu;
    let line_$p = line(min(row_$p, params.rows - 1u));
    var base_$p_0 = line_$p.base;
#if GATED
    var base_$p_1 = line_$p.base + params.up;
#endif
#end
    let live = row_0 < params.rows;
#repeat r $ROWS
#repeat p $PAIRS
#repeat h $HALVES
    var sum_$r_$p_$h = 0.0;
#end
#end
#if NORM
#repeat j $LOADS
    var square_$r_$j = vec4<f32>(0.0);
#end
#endif
#end
#if EXPERT
    let slot = slot_of(group.z);
    if (slot >= params.slot_count) { return; }
#repeat p $PAIRS
#repeat h $HALVES
    base_$p_$h += slot * params.expert_bytes;
#end
#end
#if BIAS
    let bias_at = (params.slot_first + slot) * params.bias_stride;
#endif
    let first = group.z;
    let at_0 = (group.z / params.used) * params.x_stride;
#else
    let first = group.z * $ROWSu;
#repeat r $ROWS
    let at_$r = (params.x_first + min(first + $ru, params.n - 1u)) * params.x_stride;
#end
#endif
