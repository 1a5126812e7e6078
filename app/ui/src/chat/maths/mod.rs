//! Formulas as MathML. A crate reads their LaTeX; what it writes is read again and checked, and drawn element by element, so that no
//! text of a stranger becomes markup. A formula that cannot be read, or is too large to be read safely, stays as it was written.

mod drawing;
mod limits;
mod markup;
mod mending;

use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};

pub use drawing::draw;

/// An element or a text of a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// An element of MathML.
    Element(Element),
    /// A text.
    Text(String),
}

/// An element of MathML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// One of [`markup::NAMES`].
    pub name: &'static str,
    /// Its attributes.
    pub attributes: Vec<(&'static str, String)>,
    /// What its style says.
    pub styles: Vec<(&'static str, String)>,
    /// What is in it.
    pub children: Vec<Node>,
}

/// Characters of a formula in a line of text that surely have room there. A longer one scrolls.
const SURELY_SHORT: usize = 24;

/// Commands that models often use and the crate does not know. None of them takes another one's argument twice.
const MACROS: [(&str, &str); 4] = [
    ("boxed", r"\begin{array}{|c|}\hline #1 \\ \hline\end{array}"),
    ("fbox", r"\begin{array}{|c|}\hline\text{#1} \\ \hline\end{array}"),
    // A colour could hide what is written.
    ("textcolor", "{#2}"),
    ("label", ""),
];

thread_local! {
    /// It takes a while to set up, and a long answer has many formulas.
    static READER: Option<LatexToMathML> = {
        let macros = MACROS.map(|(name, meaning)| (name.to_owned(), meaning.to_owned())).into();
        LatexToMathML::new(MathCoreConfig { macros, ..MathCoreConfig::default() }).ok()
    };
}

/// A formula with its marks, as MathML; `None` if it stays as it was written.
#[must_use]
pub fn read(formula: &str) -> Option<Element> {
    let (latex, display) = without_marks(formula)?;
    if latex.trim().is_empty() || !limits::are_kept(latex) {
        return None;
    }
    let read = |reader: &LatexToMathML| reader.convert_with_local_state(latex, display).ok();
    let markup = READER.with(|reader| reader.as_ref().and_then(read))?;
    let mut formula = markup::read(&markup.mathml)?;
    mending::close_tables(&mut formula);
    Some(formula)
}

/// The LaTeX of `\(a\)`, `\[a\]`, `$a$` or `$$a$$`, and whether it stands on lines of its own.
fn without_marks(formula: &str) -> Option<(&str, MathDisplay)> {
    [
        ("$$", "$$", MathDisplay::Block),
        ("$", "$", MathDisplay::Inline),
        (r"\[", r"\]", MathDisplay::Block),
        (r"\(", r"\)", MathDisplay::Inline),
    ]
    .into_iter()
    .find_map(|(open, close, display)| Some((formula.strip_prefix(open)?.strip_suffix(close)?, display)))
}

impl Element {
    /// It stands on lines of its own.
    #[must_use]
    pub fn is_block(&self) -> bool {
        self.attributes.contains(&("display", "block".to_owned()))
    }

    /// It may be longer than a line of text.
    #[must_use]
    pub fn may_be_long(&self) -> bool {
        self.letters() > SURELY_SHORT
    }

    fn has(&self, name: &str) -> bool {
        let has = |node: &Node| matches!(node, Node::Element(element) if element.has(name));
        self.name == name || self.children.iter().any(has)
    }

    fn letters(&self) -> usize {
        let of_node = |node: &Node| match node {
            Node::Element(element) => element.letters(),
            Node::Text(text) => text.chars().count(),
        };
        let sign = usize::from(matches!(self.name, "msqrt" | "mroot" | "mspace"));
        sign + self.children.iter().map(of_node).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Names and texts, as in a list of Lisp.
    fn told(element: &Element) -> String {
        let inside = element.children.iter().map(|node| match node {
            Node::Element(element) => told(element),
            Node::Text(text) => text.clone(),
        });
        format!("({} {})", element.name, inside.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn formulas_are_read_with_their_marks() {
        let formula = read(r"\(x_1^2 < 5\)").unwrap();
        assert_eq!(told(&formula), "(math (msubsup (mi x) (mn 1) (mn 2)) (mo <) (mn 5))");
        assert!(!formula.is_block());
        for block in ["$$\n\\frac{a}{b}\n$$", r"\[\frac{a}{b}\]"] {
            let formula = read(block).unwrap();
            assert_eq!(told(&formula), "(math (mfrac (mi a) (mi b)))");
            assert!(formula.is_block(), "{block}");
        }
        assert_eq!(read("x"), None, "it has no marks");
    }

    #[test]
    fn what_models_write_is_read() {
        for formula in [
            r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
            r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
            r"f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}",
            r"\sum_{i=0}^{n} \int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}",
            r"\boxed{x = 42}",
            r"\hat{\theta} = \operatorname*{argmax}_{\theta} \mathbb{E}[\log p]",
            r"\left( \frac{a}{b} \right) \cdot \vec{v} \implies \mathbf{A}^\top",
            r"\underbrace{a + b}_{c} \quad \ldots \quad \overline{z}",
            r"100\% \approx \$5 \textcolor{red}{\& more}",
        ] {
            assert!(read(&format!(r"\[{formula}\]")).is_some(), "{formula}");
        }
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_was_written() {
        for formula in
            [r"\(\frac{a}\)", r"\({\)", r"\(\href{javascript:alert(1)}{x}\)", r"\(\nonsense\)", r"\(a^b^c\)", "$$", "$"]
        {
            assert_eq!(read(formula), None, "{formula}");
        }
    }

    #[test]
    fn a_strangers_markup_is_text() {
        let formula = read(r#"\(\text{<img src=x onerror="alert(1)">} < \&lt;\)"#).unwrap();
        let told = told(&formula);
        assert!(told.contains("(mtext <img") && !told.contains("(img"), "{told}");
    }

    #[test]
    fn hostile_formulas_end_soon_and_need_little_stack() {
        let units = [
            r"\sqrt",
            "{",
            "^{a",
            r"\left(",
            r"\left(\sqrt{",
            r"\frac",
            r"\frac{1}",
            r"\hat",
            r"\overline",
            r"\mathbb",
            r"\not",
            r"\sum_",
            r"\displaystyle",
            r"\displaystyle x",
            r"\color{red}",
            r"\begin{matrix}",
            r"\begin{array}{c}",
            r"\text{",
            r"a\over",
            r"{a\over",
            r"\boxed{",
            r"\boxed",
            r"\textcolor{red}{",
            r"\xrightarrow[",
            r"\substack{",
            r"\mathop",
            r"\operatorname{",
            "'",
            "&",
            r"\\",
            "^",
            "_",
            r"\prime",
            r"\alpha",
            r"\sqrt[3]",
            r"\underset",
            r"\limits",
            "a",
            "~",
            r"\label{",
            r"\hspace{9999em}",
        ];
        // A thread with a quarter of the stack that a page has.
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let reads = move || {
            for unit in units {
                for (length, close) in
                    [(10, ""), (10, "x"), (60, "x"), (120, "x"), (250, "x"), (1_000, "x"), (2_000, ""), (100_000, "")]
                {
                    let nested = unit.repeat(length) + close;
                    let closed = nested.clone() + &"}".repeat(length);
                    for formula in [&nested, &closed] {
                        drop(read(&format!("$${formula}$$")));
                    }
                }
            }
        };
        assert!(small.spawn(reads).unwrap().join().is_ok());
    }

    #[test]
    fn a_formula_that_may_not_fit_a_line_is_known() {
        assert!(!read(r"\(\mathbb{R}^n \to \alpha\)").unwrap().may_be_long());
        assert!(read(&format!(r"\({}x\)", "x+".repeat(30))).unwrap().may_be_long());
    }
}
