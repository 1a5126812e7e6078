//! How units are cut into jobs, and where their tensors are cached.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use potluck_gguf::join;
use potluck_gguf::synthetic::Synthetic;
use potluck_model::{ModelSpec, TensorRole, UnitMap, UnitTensor};
use potluck_plan::WeightUnit;

use super::jobs::{Job, cut, runs, split_resident};
use super::layout::{blob_bytes, blobs, sort_units};

fn map() -> UnitMap {
    ModelSpec::from_gguf(&join([Synthetic::default().header().unwrap()]).unwrap()).unwrap().1
}

/// An LM head whose matrix is the embedding table.
fn tied() -> UnitMap {
    let mut map = map();
    let mut head = map.tensors(WeightUnit::LmHead).to_vec();
    let table = map.tensors(WeightUnit::Embedding)[0].clone();
    let matrix = head.iter_mut().find(|tensor| tensor.role == TensorRole::Output).unwrap();
    *matrix = UnitTensor { role: TensorRole::TokenEmbedding, ..table };
    map.insert(WeightUnit::LmHead, head);
    map
}

/// Buffers the bytes of a job for the cache.
fn buffer(job: &Job, bytes: &[u8]) {
    job.blob.buffer(job.blob_offset, bytes);
}

fn jobs(wanted: &[WeightUnit], map: &UnitMap, stored: Option<u64>) -> Vec<Job> {
    cut(wanted, map, 1000, |_| stored, |_, _| true)
}

#[test]
fn jobs_cover_a_unit_in_order_without_gaps() {
    let map = map();
    for unit in map.units() {
        let jobs = jobs(&[unit], &map, None);
        let mut at = 0;
        for job in &jobs {
            assert_eq!(job.blob_offset, at);
            assert!(job.len > 0 && job.len <= 1000 && job.tensor_offset.is_multiple_of(4));
            at = job.end_in_blob();
        }
        assert_eq!(at, map.bytes(unit).0);
        let ends: Vec<(bool, bool)> = jobs.iter().map(|job| (job.unit.job_done(), job.blob.job_done())).collect();
        assert!(ends.iter().rev().skip(1).all(|end| *end == (false, false)) && ends.ends_with(&[(true, true)]));
    }
}

#[test]
fn a_blob_grows_only_from_its_end() {
    let map = map();
    let jobs = jobs(&[map.units().next().unwrap()], &map, Some(1500));
    let blob = &jobs[0].blob;
    assert_eq!((jobs[0].stored(), jobs[1].stored(), jobs[2].stored()), (1000, 500, 0));
    buffer(&jobs[0], &[0; 1000]);
    assert_eq!(blob.take_buffered(0), None, "stored already");
    buffer(&jobs[2], &[0; 1000]);
    assert_eq!(blob.take_buffered(0), None, "a gap");
    buffer(&jobs[1], &[7; 1000]);
    assert_eq!(blob.take_buffered(0), Some((1500, vec![7; 500])), "a resumed piece adds what is missing");
    blob.written(500);
    assert_eq!(blob.stored(), 2000);
    blob.stop_storing();
    buffer(&jobs[2], &[0; 1000]);
    assert_eq!(blob.take_buffered(0), None, "something before it was jobs_left out");
}

#[test]
fn small_pieces_are_written_in_one_go() {
    let map = map();
    let jobs = jobs(&[map.units().next().unwrap()], &map, None);
    let blob = &jobs[0].blob;
    buffer(&jobs[0], &[1; 1000]);
    assert_eq!(blob.take_buffered(2000), None, "too little to open a file for");
    buffer(&jobs[1], &[2; 1000]);
    let (offset, bytes) = blob.take_buffered(2000).unwrap();
    assert_eq!((offset, bytes.len(), bytes[999], bytes[1000]), (0, 2000, 1, 2));
    assert_eq!(blob.take_buffered(0), None, "nothing is written twice");
    buffer(&jobs[2], &[3; 1000]);
    let next = blob.take_buffered(0).map(|(offset, _)| offset);
    assert_eq!(next, Some(2000), "the next piece goes behind what is still being written");
    assert_eq!(blob.stored(), 0, "nothing of it is in the cache yet");
}

#[test]
fn runs_are_long_and_cover_every_job_once() {
    let map = map();
    let all: Vec<WeightUnit> = map.units().collect();
    let jobs = cut(&all, &map, 1 << 20, |_| None, |_, _| true);
    let (count, bytes) = (jobs.len(), jobs.iter().map(|job| job.len).sum::<u64>());
    let runs = runs(jobs, 1 << 20);
    assert!(runs.len() < count / 2, "{} runs of {count} jobs", runs.len());
    for run in &runs {
        assert!(run.iter().map(|job| job.len).sum::<u64>() <= 1 << 20);
        assert!(run.windows(2).all(|pair| pair[0].offset + pair[0].len == pair[1].offset));
    }
    let all: Vec<&Job> = runs.iter().flatten().collect();
    assert_eq!((all.len(), all.iter().map(|job| job.len).sum::<u64>()), (count, bytes));
    assert!(all.windows(2).all(|pair| pair[0].offset < pair[1].offset));
}

#[test]
fn units_are_sorted_by_their_position_in_the_file() {
    let map = map();
    let mut units: Vec<WeightUnit> = map.units().collect();
    units.reverse();
    sort_units(&mut units, &map);
    let places: Vec<_> = units.iter().map(|unit| map.tensors(*unit)[0].range.offset).collect();
    assert!(places.is_sorted());
}

#[test]
fn a_shared_table_is_loaded_once_and_cached_in_the_embeddings_blob() {
    let map = tied();
    let both = [WeightUnit::Embedding, WeightUnit::LmHead];
    let table = map.bytes(WeightUnit::Embedding).0;
    let norm = map.bytes(WeightUnit::LmHead).0 - table;
    assert_eq!((blob_bytes(&map, WeightUnit::Embedding), blob_bytes(&map, WeightUnit::LmHead)), (table, norm));
    let bytes = |jobs: &[Job]| jobs.iter().map(|job| job.len).sum::<u64>();
    let stored = |blob| (blob == WeightUnit::Embedding).then_some(table);

    let together = jobs(&both, &map, None);
    assert_eq!(bytes(&together), table + norm);

    let alone = cut(&both[1..], &map, 1000, stored, |_, _| true);
    assert_eq!(bytes(&alone), table + norm, "a last stage needs the table as well");
    assert_eq!(alone.iter().map(Job::stored).sum::<u64>(), table, "and finds it where the first stage stored it");
    assert!(alone.iter().all(|job| job.unit.unit == WeightUnit::LmHead));
    assert_eq!(blobs(&map, [WeightUnit::LmHead]), BTreeSet::from(both));

    let is_norm = |unit, tensor: usize| map.tensors(unit)[tensor].role == TensorRole::OutputNorm;
    let rest = cut(&both[1..], &map, 1000, stored, is_norm);
    assert_eq!(bytes(&rest), norm, "the table is on the GPU already");
    let ends: Vec<bool> = rest.iter().map(|job| job.unit.job_done()).collect();
    assert_eq!(ends.last(), Some(&true));
}

#[test]
fn an_embedding_is_complete_if_the_lm_head_loaded_its_table() {
    let map = tied();
    let both = vec![WeightUnit::Embedding, WeightUnit::LmHead];
    let table_is_here = |unit, tensor: usize| map.tensors(unit)[tensor].role != TensorRole::TokenEmbedding;
    let (here, missing) = split_resident(both.clone(), &map, table_is_here);
    assert_eq!((here.as_slice(), missing.as_slice()), (&both[..1], &both[1..]), "the LM head's norm is still missing");
    assert!(cut(&here, &map, 1000, |_| None, table_is_here).is_empty());
    assert_eq!(split_resident(both.clone(), &map, |_, _| true), (vec![], both));
}

#[test]
fn a_tied_lm_head_follows_the_embedding_wherever_its_norm_is() {
    let mut map = tied();
    let mut head = map.tensors(WeightUnit::LmHead).to_vec();
    let norm = head.iter_mut().find(|tensor| tensor.role == TensorRole::OutputNorm).unwrap();
    norm.range.offset = 0;
    map.insert(WeightUnit::LmHead, head);
    let mut units = vec![WeightUnit::LmHead, WeightUnit::Embedding];
    sort_units(&mut units, &map);
    assert_eq!(units, [WeightUnit::Embedding, WeightUnit::LmHead]);
}
