// Where the splits of a context begin: every $SPLIT positions at first; from position $SPLIT × $OCTAVE on, $OCTAVE
// splits of equal length for each doubling of the position. `split_start` and `split_of` in Rust do the same.
fn split_start(split: u32) -> u32 {
    if (split < $OCTAVEu) { return split * $SPLITu; }
    return (($OCTAVEu + split % $OCTAVEu) * $SPLITu) << (split / $OCTAVEu - 1u);
}

// The split that holds a position.
fn split_of(position: u32) -> u32 {
    if (position < $SPLITu * $OCTAVEu) { return position / $SPLITu; }
    let octave = firstLeadingBit(position / ($SPLITu * $OCTAVEu));
    return $OCTAVEu * octave + (position >> octave) / $SPLITu;
}
