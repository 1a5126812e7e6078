//! What a round's recording says. How the experts of each block came, where they lie, and what happened in the longest gaps
//! between two pieces of the answer.

use std::collections::BTreeMap;

use potluck_panel::RequestId;
use potluck_swarm::{ExpertWait, Fact};
use serde::Deserialize;
use serde_json::{Value, json};

/// So many of the longest gaps are told…
const GAPS: usize = 4;
/// … with so many lines of what happened in each.
const LINES: usize = 12;

/// A line, with the milliseconds of the node's clock.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Line {
    /// When.
    #[serde(rename = "millis")]
    pub at: f64,
    kind: String,
    /// In words.
    what: String,
    /// What happens with every token, or begins a question.
    #[serde(default)]
    pub fact: Option<Fact>,
}

impl Line {
    fn rows(&self) -> Option<u32> {
        match self.fact {
            Some(Fact::Forward { rows } | Fact::ExpertCall { rows } | Fact::Picked { rows, .. }) => Some(rows),
            _ => None,
        }
    }

    /// What happens with every token. How often is told, and not when.
    fn usual(&self) -> Option<&'static str> {
        Some(match self.fact.as_ref()? {
            Fact::Prompt(_) => return None,
            Fact::AnswerPart(_) | Fact::AnswerOnTheWay => "answer part",
            Fact::Compute => "compute",
            Fact::Computed => "computed",
            Fact::Forward { .. } => "forward",
            Fact::ExpertCall { .. } => "expert call",
            Fact::ExpertResult => "expert result",
            Fact::ExpertCancel => "expert cancel",
            Fact::ExpertHint => "expert hint",
            Fact::Experts(_) => "experts of",
            Fact::Picked { .. } => "picked",
        })
    }
}

/// Reads a recording as a node writes it.
///
/// # Errors
/// A sentence: another build wrote it.
pub fn lines(json: &str) -> Result<Vec<Line>, String> {
    serde_json::from_str(json).map_err(|error| format!("The node's recording cannot be read: {error}."))
}

/// What the recording of a node says about the questions from `first` on, for a line of JSON.
pub fn report(lines: &[Line], first: RequestId, count: u32) -> Value {
    let placement: Vec<&str> = lines.iter().filter(|line| line.kind == "plan").map(|line| line.what.as_str()).collect();
    let asks = Some(Fact::Prompt(first));
    let begin = lines.iter().rposition(|line| line.fact == asks).unwrap_or(lines.len());
    let lines: Vec<&Line> = lines[begin..].iter().filter(|line| line.kind != "plan").collect();
    let waits: Vec<&ExpertWait> = lines
        .iter()
        .filter_map(|line| match &line.fact {
            Some(Fact::Experts(wait)) => Some(wait),
            _ => None,
        })
        .collect();
    let gaps = if count == 1 { gaps(&lines, first) } else { Vec::new() };
    let single = single_tokens(&gaps);
    json!({ "placement": placement, "experts": experts(&waits), "single": single, "gaps": longest(gaps, &lines) })
}

/// Times of blocks, all and by whom they waited for.
fn experts(passes: &[&ExpertWait]) -> Option<Value> {
    let mut millis: Vec<f64> = passes.iter().map(|pass| pass.millis).collect();
    millis.sort_by(f64::total_cmp);
    let quantile = |share: f64| millis.get((millis.len() as f64 * share) as usize).or(millis.last()).copied();
    quantile(0.5)?;
    let mut asked: BTreeMap<&str, (u32, f64)> = BTreeMap::new();
    for pass in passes {
        let (count, sum) = asked.entry(&pass.asked).or_default();
        (*count, *sum) = (*count + 1, *sum + pass.millis);
    }
    let pattern = |(asked, (count, sum)): (&str, (u32, f64))| json!({ "asked": asked, "passes": count, "ms": sum / f64::from(count) });
    let sum = |of: fn(&ExpertWait) -> f64| passes.iter().map(|pass| of(pass)).sum::<f64>();
    Some(json!({
        "passes": passes.len(),
        "ms": sum(|pass| pass.millis) / passes.len() as f64,
        "engine_ms": sum(|pass| pass.engine_millis) / passes.len() as f64,
        "quantiles_ms": { "50": quantile(0.5), "90": quantile(0.9), "95": quantile(0.95), "99": quantile(0.99) },
        "times_the_bytes": sum(|pass| pass.bytes as f64) / sum(|pass| pass.first_bytes as f64),
        "asked": asked.into_iter().map(pattern).collect::<Vec<Value>>(),
    }))
}

/// What was recorded between two pieces of an answer, the second one included.
struct Gap<'a> {
    piece: usize,
    lines: &'a [&'a Line],
}

impl Gap<'_> {
    fn started(&self) -> f64 {
        self.lines.first().map_or(0.0, |first| first.at)
    }

    fn millis(&self) -> f64 {
        self.lines.last().map_or(0.0, |last| last.at) - self.started()
    }

    /// Of the largest batch; more than one is a prompt's, or a token with drafts.
    fn rows(&self) -> Option<u32> {
        self.lines.iter().filter_map(|line| line.rows()).max()
    }
}

/// All gaps of an answer.
fn gaps<'a>(lines: &'a [&'a Line], request: RequestId) -> Vec<Gap<'a>> {
    let part = Some(Fact::AnswerPart(request));
    let is_piece = |line: &&Line| line.fact == part;
    let pieces: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| is_piece(line)).map(|(index, _)| index).collect();
    // Before the first tokens come parts of other kinds, and the last one is the answer's end.
    let gap = |(piece, pair): (usize, &[usize])| Gap { piece, lines: &lines[pair[0]..=pair[1]] };
    pieces.windows(2).enumerate().map(gap).collect()
}

/// What a token took that had no drafts beside it. Drafts that are right make the mean of all tokens less than that.
fn single_tokens(gaps: &[Gap<'_>]) -> Option<Value> {
    let millis: Vec<f64> = gaps.iter().filter(|gap| gap.rows() == Some(1)).map(Gap::millis).collect();
    let mean = millis.iter().sum::<f64>() / millis.len() as f64;
    (!millis.is_empty()).then(|| json!({ "tokens": millis.len(), "ms": mean }))
}

/// The longest times between two pieces of an answer, and what happened meanwhile.
fn longest(mut gaps: Vec<Gap<'_>>, lines: &[&Line]) -> Vec<Value> {
    gaps.sort_by(|a, b| b.millis().total_cmp(&a.millis()));
    gaps.truncate(GAPS);
    let begin = lines.first().map_or(0.0, |line| line.at);
    let told = |gap: Gap<'_>| {
        let started = gap.started();
        let mut usual: BTreeMap<&str, u32> = BTreeMap::new();
        gap.lines
            .iter()
            .filter_map(|line| line.usual())
            .for_each(|usual_act| *usual.entry(usual_act).or_default() += 1);
        let others = gap.lines.iter().filter(|line| line.usual().is_none());
        let line =
            |line: &Line| format!("{:.1}: {}", line.at - started, line.what.chars().take(120).collect::<String>());
        let quiet = gap.lines.windows(2).max_by(|a, b| (a[1].at - a[0].at).total_cmp(&(b[1].at - b[0].at)));
        json!({
            "piece": gap.piece,
            "at_ms": started - begin,
            "ms": gap.millis(),
            "rows": gap.rows(),
            "usual": usual,
            "others": others.take(LINES).map(|other| line(other)).collect::<Vec<String>>(),
            // The longest time in which nothing happened, with what came before and after.
            "quiet": quiet.map(|pair| json!({ "ms": pair[1].at - pair[0].at, "after": line(pair[0]), "before": line(pair[1]) })),
        })
    };
    gaps.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: f64, kind: &str, what: &str, fact: Option<Fact>) -> Line {
        Line { at, kind: kind.to_owned(), what: what.to_owned(), fact }
    }

    fn asks(at: f64, request: u32) -> Line {
        line(at, "event", "prompt", Some(Fact::Prompt(RequestId(request))))
    }

    fn piece(at: f64) -> Line {
        line(at, "action", "answer part", Some(Fact::AnswerPart(RequestId(1))))
    }

    fn call(at: f64, rows: u32) -> Line {
        line(at, "action", "to PeerId(2): expert call", Some(Fact::ExpertCall { rows }))
    }

    fn experts(at: f64, millis: f64, [bytes, first_bytes]: [u64; 2], asked: &str) -> Line {
        let (block, asked) = (potluck_plan::BlockIndex(0), asked.to_owned());
        let wait = ExpertWait { block, millis, engine_millis: 1.0, bytes, first_bytes, asked };
        line(at, "note", &wait.to_string(), Some(Fact::Experts(wait)))
    }

    #[test]
    fn a_recording_is_read_as_a_node_writes_it() {
        let told = r#"[{"millis":1.5,"kind":"event","what":"join"},
            {"millis":2.0,"kind":"event","what":"prompt","fact":{"prompt":7}},
            {"millis":3.0,"kind":"event","what":"picked","fact":{"picked":{"rows":1,"stage_millis":[1.5]}}},
            {"millis":4.0,"kind":"decision","what":"","decision":{"of":"a later build"}}]"#;
        let read = lines(told).expect("lines");
        let facts: Vec<Option<Fact>> = read.into_iter().map(|line| line.fact).collect();
        let picked = Fact::Picked { rows: 1, stage_millis: vec![1.5] };
        assert_eq!(facts, [None, Some(Fact::Prompt(RequestId(7))), Some(picked), None]);
        assert!(lines("[{}]").is_err());
    }

    #[test]
    fn blocks_are_told_by_whom_they_waited_for() {
        let lines = [
            asks(0.0, 1),
            experts(1.0, 90.0, [10, 10], "a"),
            asks(2.0, 2),
            experts(3.0, 20.0, [200, 100], "ab"),
            experts(4.0, 30.0, [200, 100], "ab"),
            experts(5.0, 40.0, [100, 100], ""),
            line(6.0, "plan", "blocks 0-2: a 4 | b 4", None),
        ];
        let report = report(&lines, RequestId(2), 1);
        assert_eq!(report["placement"], json!(["blocks 0-2: a 4 | b 4"]));
        let experts = &report["experts"];
        assert_eq!(experts["passes"], 3, "those of the round before do not count: {experts}");
        assert_eq!(experts["ms"], 30.0);
        assert_eq!(experts["times_the_bytes"], 500.0 / 300.0);
        let asked = json!([{ "asked": "", "passes": 1, "ms": 40.0 }, { "asked": "ab", "passes": 2, "ms": 25.0 }]);
        assert_eq!(experts["asked"], asked);
    }

    #[test]
    fn a_token_without_drafts_is_told_apart() {
        let lines = [
            asks(0.0, 1),
            piece(0.0),
            call(1.0, 50),
            piece(50.0),
            call(51.0, 1),
            piece(54.0),
            call(55.0, 3),
            piece(64.0),
            call(65.0, 1),
            piece(70.0),
        ];
        assert_eq!(report(&lines, RequestId(1), 1)["single"], json!({ "tokens": 2, "ms": 5.0 }));
        assert_eq!(
            report(&lines, RequestId(1), 2)["single"],
            json!(null),
            "several answers at once cannot be told apart"
        );
    }

    #[test]
    fn the_longest_gaps_say_what_happened_in_them() {
        let lines = [
            asks(0.0, 1),
            piece(5.0),
            call(6.0, 1),
            piece(10.0),
            line(11.0, "event", "from PeerId(2): holding PlanEpoch(3) version 4", None),
            line(12.0, "event", "computed Ticket(9) in 1.00 ms", Some(Fact::Computed)),
            line(38.0, "note", "a tick took 26.0 ms, and what the page shows 0.1 ms", None),
            piece(40.0),
        ];
        let report = report(&lines, RequestId(1), 1);
        let gap = &report["gaps"][0];
        assert_eq!(
            (gap["piece"].clone(), gap["ms"].clone(), gap["at_ms"].clone()),
            (json!(1), json!(30.0), json!(10.0))
        );
        let others = [
            "1.0: from PeerId(2): holding PlanEpoch(3) version 4",
            "28.0: a tick took 26.0 ms, and what the page shows 0.1 ms",
        ];
        assert_eq!(gap["others"], json!(others));
        assert_eq!(gap["usual"], json!({ "answer part": 2, "computed": 1 }));
        assert_eq!(gap["quiet"]["ms"], 26.0);
        assert_eq!(report["gaps"][1]["usual"]["expert call"], 1);
        assert_eq!((&report["gaps"][1]["rows"], &gap["rows"]), (&json!(1), &json!(null)));
    }
}
