// Where the splits of a context begin: every $SPLIT positions up to $NEAR, then every $FAR_SPLIT.
fn split_start(split: u32) -> u32 {
    let near = $NEARu / $SPLITu;
    return select($NEARu + (split - near) * $FAR_SPLITu, split * $SPLITu, split <= near);
}

// The split that holds a position.
fn split_of(position: u32) -> u32 {
    return select($NEARu / $SPLITu + (position - $NEARu) / $FAR_SPLITu, position / $SPLITu, position < $NEARu);
}
