//! The picture of a room over time, as shapes: the page makes elements from them, a file gets them as SVG. So the page never
//! parses another device's text as markup.

use super::{MarkKind, Timeline};

const LEFT: f64 = 52.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 64.0;
const PLOT: f64 = 220.0;
const LEGEND_LINE: f64 = 18.0;
/// Steps of the line.
const STEPS: f64 = 160.0;

/// A picture: its size in its own units, and what to draw, from back to front.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
    /// What it shows, in words.
    pub title: String,
    /// What to draw.
    pub shapes: Vec<Shape>,
}

/// One part of a picture. `class` says how a style sheet finds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A rectangle from the upper left corner of the picture.
    Rectangle {
        /// Its classes.
        class: &'static str,
        /// Its width.
        width: f64,
        /// Its height.
        height: f64,
    },
    /// A straight line.
    Line {
        /// Its classes.
        class: String,
        /// Where it begins.
        from: (f64, f64),
        /// Where it ends.
        to: (f64, f64),
    },
    /// An outline or an area.
    Path {
        /// Its classes.
        class: &'static str,
        /// SVG's path data.
        data: String,
    },
    /// A line of text.
    Text {
        /// Its classes; may be empty.
        class: String,
        /// Where it is.
        at: (f64, f64),
        /// Which part of it is there.
        anchor: Anchor,
        /// A number in front, with classes of its own.
        number: Option<(String, usize)>,
        /// The text itself, as it is to be read.
        text: String,
    },
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    /// As SVG's `text-anchor` says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// How wide, and in how many columns the marks are listed.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub width: f64,
    pub columns: usize,
}

impl Picture {
    pub(super) fn of(timeline: &Timeline, title: &str, format: Format) -> Self {
        let lines = timeline.marks.len().div_ceil(format.columns);
        let (width, height) = (format.width, TOP + PLOT + 52.0 + LEGEND_LINE * lines as f64);
        let mut drawing = Drawing::new(timeline, format);
        drawing.shapes.push(Shape::Rectangle { class: "paper", width, height });
        drawing.text("title", (LEFT, 26.0), Anchor::Start, title);
        drawing.axes();
        drawing.line();
        drawing.marks();
        Self { width, height, title: title.to_owned(), shapes: drawing.shapes }
    }
}

struct Drawing<'a> {
    format: Format,
    timeline: &'a Timeline,
    begin: f64,
    span: f64,
    step: f64,
    rates: Vec<f64>,
    top_rate: f64,
    shapes: Vec<Shape>,
}

impl<'a> Drawing<'a> {
    fn new(timeline: &'a Timeline, format: Format) -> Self {
        let begin = timeline.begin_ms();
        let span = (timeline.end_ms - begin).max(1_000.0);
        let step = (span / STEPS).max(250.0);
        let rates = timeline.rates(step);
        let top_rate = round_up(rates.iter().copied().fold(1.0, f64::max));
        Self { format, timeline, begin, span, step, rates, top_rate, shapes: Vec::new() }
    }

    fn x(&self, at_ms: f64) -> f64 {
        LEFT + (at_ms - self.begin) / self.span * (self.format.width - LEFT - RIGHT)
    }

    fn y(&self, rate: f64) -> f64 {
        TOP + PLOT * (1.0 - rate / self.top_rate)
    }

    fn text(&mut self, class: impl Into<String>, at: (f64, f64), anchor: Anchor, text: impl Into<String>) {
        self.shapes.push(Shape::Text { class: class.into(), at, anchor, number: None, text: text.into() });
    }

    fn axes(&mut self) {
        for part in 0..=4 {
            let rate = self.top_rate * f64::from(part) / 4.0;
            let (y, right) = (self.y(rate), self.format.width - RIGHT);
            let digits = usize::from(self.top_rate < 8.0);
            self.shapes.push(Shape::Line { class: "axis".into(), from: (LEFT, y), to: (right, y) });
            self.text("", (LEFT - 8.0, y + 4.0), Anchor::End, format!("{rate:.digits$}"));
        }
        let step = round_up(self.span * 100.0 / self.format.width);
        let mut at = 0.0;
        while at <= self.span {
            let (x, y) = (self.x(self.begin + at), TOP + PLOT + 18.0);
            let seconds = at / 1e3;
            let digits = usize::from(step < 1_000.0);
            self.text("", (x, y), Anchor::Middle, format!("{seconds:.digits$}"));
            at += step;
        }
        self.text("", (self.format.width - RIGHT, TOP + PLOT + 36.0), Anchor::End, "seconds");
        self.text("", (8.0, TOP - 10.0), Anchor::Start, "tok/s");
    }

    fn line(&mut self) {
        let right = self.format.width - RIGHT;
        let point = |(step, rate): (usize, &f64)| {
            let at = self.begin + (step as f64 + 0.5) * self.step;
            format!("{:.1} {:.1}", self.x(at).min(right), self.y(*rate))
        };
        let points: Vec<String> = self.rates.iter().enumerate().map(point).collect();
        let line = points.join("L");
        let ground = self.y(0.0);
        let end = self.x(self.begin + (self.rates.len() as f64 - 0.5) * self.step).min(right);
        let area = format!("M{line}L{end:.1} {ground:.1}L{LEFT} {ground:.1}Z");
        self.shapes.push(Shape::Path { class: "area", data: area });
        self.shapes.push(Shape::Path { class: "rate", data: format!("M{line}") });
    }

    fn marks(&mut self) {
        let columns = self.format.columns;
        let lines = self.timeline.marks.len().div_ceil(columns).max(1);
        let mut last = f64::MIN;
        let mut raised = 0;
        for (index, mark) in self.timeline.marks.iter().enumerate() {
            let (number, x, bottom) = (index + 1, self.x(mark.at_ms), TOP + PLOT);
            let class = mark.kind.class();
            self.shapes.push(Shape::Line { class: format!("mark {class}"), from: (x, TOP), to: (x, bottom) });
            // Numbers of marks close to each other stand on different heights.
            raised = if x - last < 16.0 { (raised + 1) % 3 } else { 0 };
            last = x;
            let y = TOP - 4.0 - 11.0 * f64::from(raised);
            let class = format!("number {class}");
            self.text(class.as_str(), (x, y), Anchor::Middle, number.to_string());
            let column = (index / lines) as f64 * (self.format.width - LEFT) / columns as f64;
            let at = (LEFT + column, TOP + PLOT + 62.0 + LEGEND_LINE * (index % lines) as f64);
            let text = format!(" {:.1} s · {}", (mark.at_ms - self.begin) / 1e3, mark.text);
            let number = Some((class, number));
            self.shapes.push(Shape::Text { class: String::new(), at, anchor: Anchor::Start, number, text });
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

/// The next of 1, 2, 5, 10, 20, … (or below 1: 0.5, 0.2, …).
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|round| *round >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        for (value, round) in [(0.3, 0.5), (1.0, 1.0), (3.0, 5.0), (13.0, 20.0), (640.0, 1_000.0)] {
            assert!((round_up(value) - round).abs() < 1e-9, "{value} → {}", round_up(value));
        }
    }
}
