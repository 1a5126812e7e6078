//! For measurements: what a round's recording says. How the experts of each block came, where they lie, and what happened in the longest gaps
//! between two pieces of the answer.

use std::collections::BTreeMap;

use potluck_panel::RequestId;
use serde_json::{Value, json};

/// So many of the longest gaps are told…
const GAPS: usize = 4;
/// … with so many lines of what happened in each.
const LINES: usize = 12;
/// What happens with every token. How often is told, and not when.
const USUAL: [&str; 10] = [
    "compute ",
    "computed ",
    "expert call ",
    "expert result ",
    "expert cancel ",
    "expert hint ",
    "experts of ",
    "picked ",
    "answer part ",
    "forward ",
];

/// A line, with the milliseconds of the node's clock.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    at: f64,
    kind: String,
    what: String,
}

impl Line {
    fn read(line: &Value) -> Option<Self> {
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        Some(Self { at: line["millis"].as_f64()?, kind: text("kind")?, what: text("what")? })
    }

    /// Without the peer that it came from or goes to.
    fn act(&self) -> &str {
        let is_frame = self.what.starts_with("from ") || self.what.starts_with("to ");
        is_frame.then(|| self.what.split_once(": ").map(|(_, act)| act)).flatten().unwrap_or(&self.what)
    }

    fn rows(&self) -> Option<u32> {
        self.what.split_once(" rows ")?.1.split(' ').next()?.parse().ok()
    }

    fn usual(&self) -> Option<&'static str> {
        USUAL.into_iter().find(|usual| self.act().starts_with(usual))
    }
}

/// How a block's experts came: `experts of block 3 in 22.10 ms, 1.20 ms of an engine, 4096 bytes for 2048, asked ab ac`.
#[derive(Clone, Debug, PartialEq)]
struct Pass {
    millis: f64,
    engine: f64,
    bytes: f64,
    first_bytes: f64,
    asked: String,
}

impl Pass {
    fn read(line: &Line) -> Option<Self> {
        let (_, rest) = line.what.strip_prefix("experts of block ")?.split_once(" in ")?;
        let (millis, rest) = rest.split_once(" ms, ")?;
        let (engine, rest) = rest.split_once(" ms of an engine, ")?;
        let (bytes, asked) = rest.split_once(", asked ")?;
        let (bytes, first_bytes) = bytes.split_once(" bytes for ")?;
        let number = |text: &str| text.parse::<f64>().ok();
        let asked = asked.to_owned();
        let (millis, engine) = (number(millis)?, number(engine)?);
        Some(Self { millis, engine, bytes: number(bytes)?, first_bytes: number(first_bytes)?, asked })
    }
}

/// What the recording of a node says about the questions from `first` on, for a line of JSON. `lines`: as the node wrote them.
pub(super) fn report(lines: &str, first: RequestId, count: u32) -> Value {
    let lines: Vec<Value> = serde_json::from_str(lines).unwrap_or_default();
    let lines: Vec<Line> = lines.iter().filter_map(Line::read).collect();
    let placement: Vec<&str> = lines.iter().filter(|line| line.kind == "plan").map(|line| line.what.as_str()).collect();
    let is_asked = |line: &Line| line.kind == "event" && line.what.starts_with(&format!("prompt {first:?},"));
    let begin = lines.iter().rposition(is_asked).unwrap_or(lines.len());
    let lines: Vec<&Line> = lines[begin..].iter().filter(|line| line.kind != "plan").collect();
    let passes: Vec<Pass> = lines.iter().filter_map(|line| Pass::read(line)).collect();
    let gaps = if count == 1 { gaps(&lines, first) } else { Vec::new() };
    let single = single_tokens(&gaps);
    json!({ "placement": placement, "experts": experts(&passes), "single": single, "gaps": longest(gaps, &lines) })
}

/// Times of blocks, all and by whom they waited for.
fn experts(passes: &[Pass]) -> Option<Value> {
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
    let sum = |of: fn(&Pass) -> f64| passes.iter().map(of).sum::<f64>();
    Some(json!({
        "passes": passes.len(),
        "ms": sum(|pass| pass.millis) / passes.len() as f64,
        "engine_ms": sum(|pass| pass.engine) / passes.len() as f64,
        "quantiles_ms": { "50": quantile(0.5), "90": quantile(0.9), "95": quantile(0.95), "99": quantile(0.99) },
        "times_the_bytes": sum(|pass| pass.bytes) / sum(|pass| pass.first_bytes),
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
    let part = format!("answer part {request:?}");
    let is_piece = |line: &&Line| line.kind == "action" && line.what == part;
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
            .for_each(|usual_act| *usual.entry(usual_act.trim_end()).or_default() += 1);
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

    fn recorded(lines: &[(f64, &str, &str)]) -> String {
        let line = |(at, kind, what): &(f64, &str, &str)| json!({ "millis": at, "kind": kind, "what": what });
        Value::from(lines.iter().map(line).collect::<Vec<Value>>()).to_string()
    }

    #[test]
    fn blocks_are_told_by_whom_they_waited_for() {
        let lines = recorded(&[
            (0.0, "event", "prompt RequestId(1), 1 messages"),
            (1.0, "note", "experts of block 0 in 90.00 ms, 1.00 ms of an engine, 10 bytes for 10, asked a"),
            (2.0, "event", "prompt RequestId(2), 1 messages"),
            (3.0, "note", "experts of block 0 in 20.00 ms, 1.00 ms of an engine, 200 bytes for 100, asked ab"),
            (4.0, "note", "experts of block 1 in 30.00 ms, 1.00 ms of an engine, 200 bytes for 100, asked ab"),
            (5.0, "note", "experts of block 2 in 40.00 ms, 1.00 ms of an engine, 100 bytes for 100, asked "),
            (6.0, "plan", "blocks 0-2: a 4 | b 4"),
        ]);
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
        let piece = "answer part RequestId(1)";
        let call = |rows| format!("to PeerId(2): expert call 7 block 0 rows {rows}");
        let (prompt, single, drafted) = (call(50), call(1), call(3));
        let lines = recorded(&[
            (0.0, "event", "prompt RequestId(1), 1 messages"),
            (0.0, "action", piece),
            (1.0, "action", &prompt),
            (50.0, "action", piece),
            (51.0, "action", &single),
            (54.0, "action", piece),
            (55.0, "action", &drafted),
            (64.0, "action", piece),
            (65.0, "action", &single),
            (70.0, "action", piece),
        ]);
        assert_eq!(report(&lines, RequestId(1), 1)["single"], json!({ "tokens": 2, "ms": 5.0 }));
        assert_eq!(
            report(&lines, RequestId(1), 2)["single"],
            json!(null),
            "several answers at once cannot be told apart"
        );
    }

    #[test]
    fn the_longest_gaps_say_what_happened_in_them() {
        let piece = "answer part RequestId(1)";
        let lines = recorded(&[
            (0.0, "event", "prompt RequestId(1), 1 messages"),
            (5.0, "action", piece),
            (6.0, "action", "to PeerId(2): expert call 7 block 0 rows 1"),
            (10.0, "action", piece),
            (11.0, "event", "from PeerId(2): holding PlanEpoch(3) version 4"),
            (12.0, "event", "computed Ticket(9) in 1.00 ms"),
            (38.0, "note", "a tick took 26.0 ms, and what the page shows 0.1 ms"),
            (40.0, "action", piece),
        ]);
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
