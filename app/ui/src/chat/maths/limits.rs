//! How much of a formula is read. The crate that reads them calls itself for each level, and a page has little stack.

/// Bytes of a formula.
const LONGEST: usize = 2 << 10;
/// Groups within groups.
const DEEPEST: usize = 24;
/// Commands that may take what follows into themselves, each a level in the worst case.
const MOST_COMMANDS: usize = 100;

/// Commands that take nothing. Long formulas are full of them.
const SYMBOLS: [&str; 88] = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "varepsilon",
    "zeta",
    "eta",
    "theta",
    "vartheta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "pi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "varphi",
    "chi",
    "psi",
    "omega",
    "Gamma",
    "Delta",
    "Theta",
    "Lambda",
    "Xi",
    "Pi",
    "Sigma",
    "Phi",
    "Psi",
    "Omega",
    "cdot",
    "times",
    "div",
    "pm",
    "mp",
    "ast",
    "circ",
    "le",
    "leq",
    "ge",
    "geq",
    "ne",
    "neq",
    "approx",
    "sim",
    "equiv",
    "to",
    "rightarrow",
    "Rightarrow",
    "leftarrow",
    "implies",
    "iff",
    "in",
    "notin",
    "subset",
    "cup",
    "cap",
    "forall",
    "exists",
    "infty",
    "partial",
    "nabla",
    "ell",
    "quad",
    "qquad",
    "dots",
    "ldots",
    "cdots",
    "vdots",
    "ddots",
    "sin",
    "cos",
    "tan",
    "log",
    "ln",
    "exp",
    "min",
    "max",
    "lim",
    "det",
    "top",
    "end",
];

/// A formula is small and flat enough to be read.
pub fn are_kept(latex: &str) -> bool {
    latex.len() <= LONGEST && !latex.contains('\0') && depth(latex) <= DEEPEST && commands(latex) <= MOST_COMMANDS
}

/// Braces that are open at once, whether or not one is escaped.
fn depth(latex: &str) -> usize {
    let mut open = 0_usize;
    let mut most = 0;
    for letter in latex.bytes() {
        match letter {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

fn commands(latex: &str) -> usize {
    let name = |rest: &'_ str| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    let is_taking = |name: &String| !name.is_empty() && !SYMBOLS.contains(&name.as_str());
    latex.split('\\').skip(1).map(name).filter(is_taking).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_or_nests_deeply_is_not_read() {
        assert!(are_kept(r"\frac{a}{b}") && are_kept(""));
        assert!(!are_kept(&"a".repeat(LONGEST + 1)));
        assert!(are_kept(&"{a}".repeat(300)), "groups beside each other");
        assert!(!are_kept(&"{".repeat(DEEPEST + 1)));
        assert!(!are_kept(&r"\sqrt".repeat(MOST_COMMANDS + 1)));
        assert!(are_kept(&r"\alpha\, ".repeat(200)), "they take nothing");
        assert!(!are_kept("a\0b"));
    }
}
