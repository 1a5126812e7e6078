//! A room over time: tokens per second with joins and leaves (dynamic-partitioning.txt, figure 7.11), and its picture.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Tokens that come within so many milliseconds are one sample.
const SAMPLE_MS: f64 = 100.0;
/// Most samples and marks kept; the oldest go first.
const MOST_SAMPLES: usize = 20_000;
const MOST_MARKS: usize = 400;

/// What happened to a room over time. Times are milliseconds from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Tokens, in the order in which they came.
    pub samples: Vec<TokenSample>,
    /// Joins, leaves, pauses and plans, in order.
    pub marks: Vec<Mark>,
    /// How long it lasts.
    pub end_ms: f64,
}

/// Tokens that came at (almost) the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenSample {
    /// When the first of them came.
    pub at_ms: f64,
    /// How many.
    pub count: u32,
}

/// Something that changed the room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// When.
    pub at_ms: f64,
    /// What kind.
    pub kind: MarkKind,
    /// In words.
    pub text: String,
}

/// Kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// A device came, or came back.
    Join,
    /// A device went.
    Leave,
    /// A device stands still, is cut off, or slow.
    Pause,
    /// Another plan counts.
    Plan,
}

impl Timeline {
    /// Tokens came.
    pub fn tokens(&mut self, at_ms: f64, count: u32) {
        if count == 0 {
            return;
        }
        self.end_ms = self.end_ms.max(at_ms);
        match self.samples.last_mut() {
            Some(last) if at_ms - last.at_ms < SAMPLE_MS => last.count += count,
            _ => self.samples.push(TokenSample { at_ms, count }),
        }
        if self.samples.len() > MOST_SAMPLES {
            self.samples.drain(..MOST_SAMPLES / 10);
        }
    }

    /// Something changed.
    pub fn mark(&mut self, at_ms: f64, kind: MarkKind, text: String) {
        self.end_ms = self.end_ms.max(at_ms);
        self.marks.push(Mark { at_ms, kind, text });
        if self.marks.len() > MOST_MARKS {
            self.marks.remove(0);
        }
    }

    /// Nothing but time went by.
    pub fn until(&mut self, at_ms: f64) {
        self.end_ms = self.end_ms.max(at_ms);
    }

    /// When it begins: what is before the oldest sample was dropped.
    fn begin_ms(&self) -> f64 {
        let sample = self.samples.first().map(|sample| sample.at_ms);
        let mark = self.marks.first().map(|mark| mark.at_ms);
        [sample, mark].into_iter().flatten().fold(self.end_ms, f64::min)
    }

    /// Tokens per second in steps of `step_ms` from the beginning.
    #[must_use]
    pub fn rates(&self, step_ms: f64) -> Vec<f64> {
        let begin = self.begin_ms();
        let steps = ((self.end_ms - begin) / step_ms).ceil().max(1.0) as usize;
        let mut rates = vec![0.0; steps];
        for sample in &self.samples {
            let step = (((sample.at_ms - begin) / step_ms) as usize).min(steps - 1);
            rates[step] += f64::from(sample.count) * 1e3 / step_ms;
        }
        rates
    }

    /// The picture, as a whole SVG document with its own colours: for a file.
    #[must_use]
    pub fn to_svg(&self, title: &str) -> String {
        Drawing::new(self, Format { width: 960.0, columns: 2, style: Some(STYLE) }).svg(title)
    }

    /// The same for a narrow column of the page, whose style sheet (`app/ui/styles/timeline.css`) colours it: the page's
    /// policy lets no style element count.
    #[must_use]
    pub fn to_narrow_svg(&self, title: &str) -> String {
        Drawing::new(self, Format { width: 420.0, columns: 1, style: None }).svg(title)
    }
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 64.0;
const PLOT: f64 = 220.0;
const LEGEND_LINE: f64 = 18.0;
/// Steps of the line.
const STEPS: f64 = 160.0;
/// The page's light colours, for a picture in a file.
const STYLE: &str = "\
.paper{fill:#fff}\
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#2b2420}\
.title{font-weight:600;font-size:15px}\
.axis{stroke:#e6dccf;stroke-width:1}\
.rate{fill:none;stroke:#c7382b;stroke-width:2;stroke-linejoin:round}\
.area{fill:#fbe9e5}\
.mark{stroke-width:1.5;stroke-dasharray:4 3}\
.join{stroke:#336a31;fill:#336a31}\
.leave{stroke:#ac2c21;fill:#ac2c21}\
.pause{stroke:#865300;fill:#865300}\
.plan{stroke:#665a51;fill:#665a51}\
.number{stroke:none;font-size:11px;font-weight:600}";

/// How wide, in how many columns the marks are listed, and the style sheet inside, if it needs one of its own.
#[derive(Clone, Copy)]
struct Format {
    width: f64,
    columns: usize,
    style: Option<&'static str>,
}

struct Drawing<'a> {
    format: Format,
    timeline: &'a Timeline,
    begin: f64,
    span: f64,
    step: f64,
    rates: Vec<f64>,
    top_rate: f64,
}

impl<'a> Drawing<'a> {
    fn new(timeline: &'a Timeline, format: Format) -> Self {
        let begin = timeline.begin_ms();
        let span = (timeline.end_ms - begin).max(1_000.0);
        let step = (span / STEPS).max(250.0);
        let rates = timeline.rates(step);
        let top_rate = round_up(rates.iter().copied().fold(1.0, f64::max));
        Self { format, timeline, begin, span, step, rates, top_rate }
    }

    fn x(&self, at_ms: f64) -> f64 {
        LEFT + (at_ms - self.begin) / self.span * (self.format.width - LEFT - RIGHT)
    }

    fn y(&self, rate: f64) -> f64 {
        TOP + PLOT * (1.0 - rate / self.top_rate)
    }

    fn svg(&self, title: &str) -> String {
        let Format { width, columns, style } = self.format;
        let style = style.map(|style| format!("<style>{style}</style>")).unwrap_or_default();
        let lines = self.timeline.marks.len().div_ceil(columns);
        let height = TOP + PLOT + 52.0 + LEGEND_LINE * lines as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
             <title>{0}</title>{style}\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\
             <text class=\"title\" x=\"{LEFT}\" y=\"26\">{0}</text>",
            escape(title)
        );
        self.axes(&mut svg);
        self.line(&mut svg);
        self.marks(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, svg: &mut String) {
        for part in 0..=4 {
            let rate = self.top_rate * f64::from(part) / 4.0;
            let (y, right) = (self.y(rate), self.format.width - RIGHT);
            let digits = usize::from(self.top_rate < 8.0);
            push(svg, format_args!("<line class=\"axis\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>"));
            let (x, y) = (LEFT - 8.0, y + 4.0);
            push(svg, format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{rate:.digits$}</text>"));
        }
        let step = round_up(self.span * 100.0 / self.format.width);
        let mut at = 0.0;
        while at <= self.span {
            let (x, y) = (self.x(self.begin + at), TOP + PLOT + 18.0);
            let seconds = at / 1e3;
            let digits = usize::from(step < 1_000.0);
            push(svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{seconds:.digits$}</text>"));
            at += step;
        }
        let (x, y) = (self.format.width - RIGHT, TOP + PLOT + 36.0);
        push(svg, format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">seconds</text>"));
        push(svg, format_args!("<text x=\"8\" y=\"{}\">tok/s</text>", TOP - 10.0));
    }

    fn line(&self, svg: &mut String) {
        let point = |(step, rate): (usize, &f64)| {
            let at = self.begin + (step as f64 + 0.5) * self.step;
            format!("{:.1} {:.1}", self.x(at).min(self.format.width - RIGHT), self.y(*rate))
        };
        let points: Vec<String> = self.rates.iter().enumerate().map(point).collect();
        let line = points.join("L");
        let ground = self.y(0.0);
        let end = self.x(self.begin + (self.rates.len() as f64 - 0.5) * self.step).min(self.format.width - RIGHT);
        push(svg, format_args!("<path class=\"area\" d=\"M{line}L{end:.1} {ground:.1}L{LEFT} {ground:.1}Z\"/>"));
        push(svg, format_args!("<path class=\"rate\" d=\"M{line}\"/>"));
    }

    fn marks(&self, svg: &mut String) {
        let columns = self.format.columns;
        let lines = self.timeline.marks.len().div_ceil(columns).max(1);
        let mut last = f64::MIN;
        let mut raised = 0;
        for (index, mark) in self.timeline.marks.iter().enumerate() {
            let (number, x, bottom) = (index + 1, self.x(mark.at_ms), TOP + PLOT);
            let class = mark.kind.class();
            push(
                svg,
                format_args!("<line class=\"mark {class}\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>"),
            );
            // Numbers of marks close to each other stand on different heights.
            raised = if x - last < 16.0 { (raised + 1) % 3 } else { 0 };
            last = x;
            let y = TOP - 4.0 - 11.0 * f64::from(raised);
            push(
                svg,
                format_args!(
                    "<text class=\"number {class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{number}</text>"
                ),
            );
            let column = (index / lines) as f64 * (self.format.width - LEFT) / columns as f64;
            let (x, y) = (LEFT + column, TOP + PLOT + 62.0 + LEGEND_LINE * (index % lines) as f64);
            let (seconds, text) = ((mark.at_ms - self.begin) / 1e3, escape(&mark.text));
            push(
                svg,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\"><tspan class=\"number {class}\">{number}</tspan> {seconds:.1} s · {text}</text>"
                ),
            );
        }
    }
}

impl MarkKind {
    fn class(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Pause => "pause",
            Self::Plan => "plan",
        }
    }
}

/// Writing to a string cannot fail.
fn push(svg: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(arguments);
}

/// The next of 1, 2, 5, 10, 20, … (or below 1: 0.5, 0.2, …).
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|round| *round >= value).unwrap_or(value)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> Timeline {
        let mut timeline = Timeline::default();
        timeline.mark(0.0, MarkKind::Join, "Laptop enters".into());
        for token in 0..50 {
            timeline.tokens(f64::from(token) * 100.0, 1);
        }
        timeline.mark(2_500.0, MarkKind::Leave, "Phone <1> leaves".into());
        timeline.until(10_000.0);
        timeline
    }

    #[test]
    fn rates_are_tokens_over_time() {
        let rates = timeline().rates(2_500.0);
        assert_eq!(rates.iter().map(|rate| rate.round()).collect::<Vec<_>>(), [10.0, 10.0, 0.0, 0.0]);
        assert_eq!(Timeline::default().rates(1_000.0), [0.0]);
    }

    #[test]
    fn tokens_that_come_together_are_one_sample() {
        let mut timeline = Timeline::default();
        for at in [0.0, 10.0, 50.0, 150.0] {
            timeline.tokens(at, 2);
        }
        assert_eq!(timeline.samples.iter().map(|sample| sample.count).collect::<Vec<_>>(), [6, 2]);
    }

    #[test]
    fn the_picture_has_the_line_every_mark_and_safe_text() {
        let svg = timeline().to_svg("A & B");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("class=\"rate\"").count(), 1);
        assert_eq!(svg.matches("class=\"mark ").count(), 2);
        assert!(svg.contains("A &amp; B") && svg.contains("Phone &lt;1&gt; leaves"), "{svg}");
        assert!(svg.contains("<style>"), "a picture in a file brings its colours");
        assert!(!timeline().to_narrow_svg("A").contains("<style"), "the page's policy blocks style elements");
        assert!(!svg.contains("NaN") && !Timeline::default().to_svg("empty").contains("NaN"));
    }

    #[test]
    fn axes_end_on_round_numbers() {
        for (value, round) in [(0.3, 0.5), (1.0, 1.0), (3.0, 5.0), (13.0, 20.0), (640.0, 1_000.0)] {
            assert!((round_up(value) - round).abs() < 1e-9, "{value} → {}", round_up(value));
        }
    }
}
