use pulldown_cmark::{Event, Options, Parser};

use super::{formulas::Formulas, *};

fn text(text: &str) -> Span {
    Span::Text(text.into())
}

fn written(text: &str) -> Span {
    Span::AsWritten(text.into())
}

fn formula(text: &str) -> Span {
    Span::Formula(text.into())
}

fn paragraph(spans: &[Span]) -> Vec<Block> {
    vec![Block::Paragraph(spans.to_vec())]
}

fn item(blocks: Vec<Block>) -> Item {
    Item { done: None, blocks }
}

#[test]
fn paragraphs_and_emphasis() {
    assert_eq!(
        parse("Hello **you** there"),
        paragraph(&[text("Hello "), Span::Strong(vec![text("you")]), text(" there")])
    );
}

#[test]
fn a_line_that_was_broken_stays_broken() {
    let lines = paragraph(&[text("Roses are red,"), Span::Break, text("violets are blue")]);
    for source in [
        "Roses are red,\nviolets are blue",
        "Roses are red,<br>violets are blue",
        "Roses are red,<BR />violets are blue",
    ] {
        assert_eq!(parse(source), lines, "{source}");
    }
    assert_eq!(parse("a <brown> fox"), paragraph(&[text("a <brown> fox")]));
}

#[test]
fn code_keeps_its_language_and_its_lines_even_unfinished() {
    let code = |source| vec![Block::Code { language: "rust".into(), text: String::from(source) }];
    assert_eq!(parse("```rust\nfn main() {}\n\nlet x;\n```"), code("fn main() {}\n\nlet x;"));
    assert_eq!(parse("```rust\nfn main("), code("fn main("));
}

#[test]
fn html_is_never_more_than_text() {
    assert_eq!(parse("a <b>c</b>"), paragraph(&[text("a <b>c</b>")]));
    assert_eq!(parse("<script>x</script>"), paragraph(&[text("<script>x</script>")]));
}

#[test]
fn links_lead_to_the_web_only() {
    assert_eq!(parse("[a](javascript:x)"), paragraph(&[text("a")]));
    let link = |address: &str, words: &str| Span::Link(address.into(), vec![text(words)]);
    assert_eq!(parse("[a](https://example.org)"), paragraph(&[link("https://example.org", "a")]));
}

#[test]
fn bare_addresses_are_links_without_what_ends_their_sentence() {
    let link = |address: &str| Span::Link(address.into(), vec![text(address)]);
    assert_eq!(
        parse("See https://example.org/a_b(c). Or (http://example.org/x_y_z)!"),
        paragraph(&[
            text("See "),
            link("https://example.org/a_b(c)"),
            text(". Or ("),
            link("http://example.org/x_y_z"),
            text(")!"),
        ])
    );
    let chinese = [text("见 "), link("https://example.org/a"), text("，然后")];
    assert_eq!(parse("见 https://example.org/a，然后"), paragraph(&chinese));
    assert_eq!(parse("`https://example.org`"), paragraph(&[Span::Code("https://example.org".into())]));
    assert_eq!(parse("ftp://example.org"), paragraph(&[text("ftp://example.org")]));
}

#[test]
fn formulas_are_not_taken_for_markdown() {
    assert_eq!(
        parse(r"So \(a_1 * b_2 * c_3\) and $x_1 + x_2$ hold."),
        paragraph(&[
            text("So "),
            formula(r"\(a_1 * b_2 * c_3\)"),
            text(" and "),
            formula("$x_1 + x_2$"),
            text(" hold.")
        ])
    );
    let display = "\\[\na_1\n= b * c * d\n- e\n\\]";
    assert_eq!(parse(display), paragraph(&[formula(display)]));
    assert_eq!(parse("$$\n\\frac{a}{b}\n$$"), paragraph(&[formula("$$\n\\frac{a}{b}\n$$")]));
    assert_eq!(parse(r"It begins \(a_1 and"), paragraph(&[text("It begins "), written(r"\("), text("a_1 and")]));
}

#[test]
fn so_many_formulas_are_drawn_and_no_more() {
    let many = format!("{:?}", parse(&"$a$ ".repeat(3_000)));
    assert_eq!((many.matches("Formula").count(), many.matches("AsWritten").count()), (1_000, 2_000));
}

#[test]
fn prices_and_code_are_no_formulas() {
    assert_eq!(parse("$5 and $10"), paragraph(&[text("$5 and $10")]));
    assert_eq!(parse("$5 or *$6* now"), paragraph(&[text("$5 or "), Span::Emphasis(vec![text("$6")]), text(" now")]));
    assert_eq!(
        parse("`$a` and `\\(b\\)`"),
        paragraph(&[Span::Code("$a".into()), text(" and "), Span::Code("\\(b\\)".into())])
    );
    let code = |code: &str| Block::Code { language: String::new(), text: code.into() };
    assert_eq!(parse("```\necho $a\n```\n\n```\n$b \\(c\\)\n```"), [code("echo $a"), code("$b \\(c\\)")]);
    assert_eq!(parse(r"\*no emphasis\*"), paragraph(&[text("*no emphasis*")]));
}

#[test]
fn the_marks_of_formulas_mean_nothing_in_a_strangers_text() {
    let marks = "\u{E000}0\u{E001} $x_1$ \u{E000}9\u{E001}";
    assert_eq!(plain_text(&parse(marks)), format!("{marks}\n"));
}

#[test]
fn lists_nest_and_count() {
    let inner = Block::List { start: None, items: vec![item(paragraph(&[text("b")]))] };
    let first = item(vec![Block::Paragraph(vec![text("a")]), inner]);
    let list = Block::List { start: Some(3), items: vec![first, item(paragraph(&[text("c")]))] };
    assert_eq!(parse("3. a\n   - b\n4. c"), vec![list]);
}

#[test]
fn tasks_are_done_or_not() {
    let task = |done, words| Item { done: Some(done), blocks: paragraph(&[text(words)]) };
    let list = Block::List { start: None, items: vec![task(true, "wash"), task(false, "cook")] };
    assert_eq!(parse("- [x] wash\n- [ ] cook"), [list]);
}

#[test]
fn tables_have_rows_and_columns() {
    let row = |is_head, first, second| {
        let cell = |at_end, spans| Cell { is_head, at_end, spans };
        vec![cell(false, vec![text(first)]), cell(true, second)]
    };
    let broken = vec![text("2"), Span::Break, text("3")];
    assert_eq!(
        parse("| a | b |\n|---|--:|\n| 1 | 2<br>3 |"),
        [Block::Table { head: row(true, "a", vec![text("b")]), rows: vec![row(false, "1", broken)] }]
    );
}

/// Levels of blocks and spans in each other.
fn depth(blocks: &[Block]) -> usize {
    fn of_spans(spans: &[Span]) -> usize {
        let of = |span: &Span| match span {
            Span::Strong(inner) | Span::Emphasis(inner) | Span::Struck(inner) | Span::Link(_, inner) => of_spans(inner),
            _ => 0,
        };
        1 + spans.iter().map(of).max().unwrap_or(0)
    }
    let of = |block: &Block| match block {
        Block::Paragraph(spans) | Block::Heading(_, spans) => of_spans(spans),
        Block::List { items, .. } => items.iter().map(|item| depth(&item.blocks)).max().unwrap_or(0),
        Block::Quote(inner) => depth(inner),
        Block::Code { .. } | Block::Table { .. } | Block::Rule => 1,
    };
    1 + blocks.iter().map(of).max().unwrap_or(0)
}

#[test]
fn what_is_nested_too_deeply_is_left_as_it_was_written() {
    let indented: String = (0..300).map(|level| format!("{}- level {level}\n", "  ".repeat(level))).collect();
    let deep = [
        format!("{} the end", ">".repeat(3_000)),
        format!("{}the end", "- ".repeat(20_000)),
        format!("{indented}{}the end", " ".repeat(600)),
        format!("{}the end{}", "**_~~".repeat(500), "~~_**".repeat(500)),
        format!("{}the end", "> - 1. ".repeat(3_000)),
        format!("{}the end{}", "![".repeat(5_000), "](http://a)".repeat(5_000)),
    ];
    for source in deep {
        let blocks = parse(&source);
        let start: String = source.chars().take(20).collect();
        assert!(depth(&blocks) < 24, "{start}… is {} levels deep", depth(&blocks));
        assert!(plain_text(&blocks).contains("the end"), "{start}… lost its end");
    }
}

#[test]
fn the_parser_sees_few_levels() {
    let steps = |mark: &str, indent: &str| -> String {
        (0..300).map(|level| format!("{}{mark}\n", indent.repeat(level))).collect()
    };
    let texts = [
        ">".repeat(3_000),
        "- ".repeat(3_000) + "a",
        "> 1) ".repeat(3_000),
        steps("- a", "  "),
        steps("- - - a", "\t"),
        steps("-", "  "),
        steps("> - > a", "  > "),
        "-\n\n".repeat(3_000),
        "-\n\n  - a\n".repeat(300),
        format!("```\n{}", "- ".repeat(3_000) + "a"),
        format!("\u{E000}{}", ">".repeat(3_000)),
        format!("$a\n{}$", ">".repeat(3_000)),
    ];
    for text in texts {
        let text = format!("{text}\n{}", "and on\n".repeat(10));
        let (mut open, mut most) = (0_usize, 0);
        for event in Parser::new_ext(&Formulas::find(&text).marked, Options::ENABLE_TABLES) {
            match event {
                Event::Start(_) => open += 1,
                Event::End(_) => open -= 1,
                _ => {}
            }
            most = most.max(open);
        }
        let start: String = text.chars().take(20).collect();
        assert!(most <= 70, "{start:?}… has {most} levels, through which each line that follows is looked for");
    }
}

#[test]
fn a_text_without_end_is_not_parsed_without_end() {
    let long = "*a* ".repeat(100_000);
    let blocks = parse(&long);
    assert_eq!(blocks.len(), 2);
    assert!(matches!(&blocks[1], Block::Paragraph(spans) if matches!(spans.as_slice(), [Span::AsWritten(_)])));
}

/// Bytes of all texts and addresses, and cells of all tables.
fn size(blocks: &[Block]) -> usize {
    fn of_spans(spans: &[Span]) -> usize {
        let of = |span: &Span| match span {
            Span::Text(text) | Span::AsWritten(text) | Span::Formula(text) | Span::Code(text) => text.len(),
            Span::Strong(inner) | Span::Emphasis(inner) | Span::Struck(inner) => of_spans(inner),
            Span::Link(address, inner) => address.len() + of_spans(inner),
            Span::Break => 1,
        };
        spans.iter().map(of).sum()
    }
    let of = |block: &Block| match block {
        Block::Paragraph(spans) | Block::Heading(_, spans) => of_spans(spans),
        Block::Code { text, .. } => text.len(),
        Block::List { items, .. } => items.iter().map(|item| size(&item.blocks)).sum(),
        Block::Quote(inner) => size(inner),
        Block::Table { head, rows } => {
            head.iter().chain(rows.iter().flatten()).map(|cell| 1 + of_spans(&cell.spans)).sum()
        }
        Block::Rule => 1,
    };
    blocks.iter().map(of).sum()
}

#[test]
fn what_is_drawn_is_not_many_times_what_was_written() {
    let columns = 1_000;
    let long = "x".repeat(3_000);
    let texts = [
        ("rows of one cell", format!("{}\n{}\n{}", "|a".repeat(columns), "|-".repeat(columns), "a\n".repeat(columns))),
        ("a long address", format!("[a]: /\\({long}\\)\n\n{}", "[a]".repeat(5_000))),
        ("a formula in addresses", format!("$${long}$$ {}", "[a](http://a/&#xE000;0&#xE001;)".repeat(1_000))),
    ];
    for (what, text) in texts {
        let times = size(&parse(&text)) as f64 / text.len() as f64;
        assert!(times < 8.0, "{what}: {times:.1} times as much is drawn");
    }
}
