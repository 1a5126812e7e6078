//! A picture as a file.

use std::fmt::Write as _;

use super::{Picture, Shape};

/// The page's light colours.
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

/// A whole SVG document with its own colours.
pub(super) fn document(picture: &Picture) -> String {
    let Picture { width, height, title, shapes } = picture;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
         <title>{}</title><style>{STYLE}</style>",
        escape(title)
    );
    for shape in shapes {
        // Writing to a string cannot fail.
        let _ = write(&mut svg, shape);
    }
    svg.push_str("</svg>\n");
    svg
}

fn write(svg: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Rectangle { class, width, height } => {
            write!(svg, "<rect class=\"{class}\" width=\"{width}\" height=\"{height}\"/>")
        }
        Shape::Line { class, from, to } => write!(
            svg,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        ),
        Shape::Path { class, data } => write!(svg, "<path class=\"{class}\" d=\"{data}\"/>"),
        Shape::Text { class, at, anchor, number, text } => {
            let anchor = anchor.name();
            write!(svg, "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">", at.0, at.1)?;
            if let Some((class, number)) = number {
                write!(svg, "<tspan class=\"{class}\">{number}</tspan>")?;
            }
            write!(svg, "{}</text>", escape(text))
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
