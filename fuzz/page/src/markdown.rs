//! Answers: Markdown as bad as it can be.

use potluck_plan::random::Random;

use crate::words;

/// Everything that means something in Markdown, in formulas and where addresses end.
const MARKS: [&str; 67] = [
    ">",
    "> ",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "1) ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "- [ ] ",
    "- [x] ",
    "[",
    "]",
    "](",
    "[a](b \"",
    "[a](b '",
    "[a](b (",
    "\"",
    "x\n",
    "(",
    ")",
    "![",
    "[]",
    "[a]",
    "[a]: ",
    "[^1]",
    "`",
    "``",
    "```",
    "```\n",
    "~~~\n",
    "~",
    "~~",
    "*",
    "**",
    "***",
    "_",
    "__",
    "<",
    "</",
    "<b>",
    "<!--",
    "-->",
    "<http://a.b>",
    "<![CDATA[",
    "|",
    "\n|",
    "|---",
    "\n|---|---|\n",
    "#",
    "\n# ",
    "\n===",
    "\n---\n",
    "\\",
    "\\(",
    "\\[",
    "$",
    "$$",
    "&#0;",
    "https://a.b/(",
    "www.",
    "a@b.c",
    "\\\n",
];

/// A text of about this length.
pub fn text(random: &mut Random, length: usize) -> String {
    let mut text = String::with_capacity(length + 64);
    while text.len() < length {
        let left = length - text.len();
        match random.below(13) {
            0 => text.push_str(&words::text(random, left.min(200))),
            // Nested, or one mark over and over: what takes deep stacks and long searches.
            1 => {
                let part = random.below(left) + 1;
                text.push_str(&run(random, part));
            }
            2 if random.chance(0.1) => text.push_str(&indented(random, left)),
            // Something opens, and one mark is repeated to the end: this hits whatever looks for an end from each line.
            3 if random.chance(0.1) => {
                text.push_str(MARKS[random.below(MARKS.len())]);
                let mark = MARKS[random.below(MARKS.len())];
                text.push_str(&mark.repeat(left / mark.len()));
            }
            _ => {
                text.push_str(MARKS[random.below(MARKS.len())]);
                text.push_str(words::PIECES[random.below(words::PIECES.len())]);
            }
        }
    }
    text
}

/// One to four marks, again and again.
fn run(random: &mut Random, length: usize) -> String {
    let unit: String = (0..=random.below(4)).map(|_| MARKS[random.below(MARKS.len())]).collect();
    unit.repeat(length / unit.len() + 1)
}

/// Lines that each go deeper.
fn indented(random: &mut Random, length: usize) -> String {
    let mark = ["- ", "> ", "1. ", "* - "][random.below(4)];
    let mut text = String::new();
    let mut level = 0;
    while text.len() < length {
        text.push_str(&"  ".repeat(level));
        text.push_str(mark);
        text.push_str("deep\n");
        level += 1;
    }
    text
}
