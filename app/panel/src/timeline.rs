//! A room over time: tokens per second with joins and leaves (dynamic-partitioning.txt, figure 7.11), and its picture.

mod picture;
mod svg;

use serde::{Deserialize, Serialize};

use self::picture::Format;
pub use self::picture::{Anchor, Picture, Shape};

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

    /// The picture as a whole SVG document with its own colours: for a file.
    #[must_use]
    pub fn to_svg(&self, title: &str) -> String {
        svg::document(&Picture::of(self, title, Format { width: 960.0, columns: 2 }))
    }

    /// The picture for a narrow column of the page, which makes its elements and colours them.
    #[must_use]
    pub fn to_narrow_picture(&self, title: &str) -> Picture {
        Picture::of(self, title, Format { width: 420.0, columns: 1 })
    }
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
        assert!(!svg.contains("NaN") && !Timeline::default().to_svg("empty").contains("NaN"));
    }

    #[test]
    fn the_page_gets_the_same_shapes_narrower() {
        let picture = timeline().to_narrow_picture("A & B");
        assert_eq!((picture.width, picture.title.as_str()), (420.0, "A & B"));
        let texts = picture.shapes.iter().filter_map(|shape| match shape {
            Shape::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert!(texts.into_iter().any(|text| text.ends_with("Phone <1> leaves")), "text as it is, not escaped");
    }
}
