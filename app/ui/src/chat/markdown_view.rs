//! Renders Markdown as elements. A model's text is never interpreted as HTML.

use leptos::prelude::*;

use super::{
    code_block::CodeBlock,
    markdown::{Block, Span},
};

/// One block.
#[component]
pub fn BlockView(
    /// The block to render.
    block: Block,
) -> impl IntoView {
    draw(block)
}

fn draw(block: Block) -> AnyView {
    match block {
        Block::Paragraph(inner) => view! { <p>{spans(inner)}</p> }.into_any(),
        // The page itself uses headings 1 to 3, so an answer's headings start below them.
        Block::Heading(1, inner) => view! { <h4 class="prose-h1">{spans(inner)}</h4> }.into_any(),
        Block::Heading(2, inner) => view! { <h5 class="prose-h2">{spans(inner)}</h5> }.into_any(),
        Block::Heading(_, inner) => view! { <h6 class="prose-h3">{spans(inner)}</h6> }.into_any(),
        Block::Code { language, text } => view! { <CodeBlock language text /> }.into_any(),
        Block::List { start: None, items: list } => view! { <ul>{items(list)}</ul> }.into_any(),
        Block::List { start: Some(start), items: list } => {
            view! { <ol start=start.to_string()>{items(list)}</ol> }.into_any()
        }
        Block::Quote(blocks) => {
            view! { <blockquote>{blocks.into_iter().map(draw).collect_view()}</blockquote> }.into_any()
        }
        Block::Table { right, rows } => table(&right, rows),
        Block::Rule => view! { <hr /> }.into_any(),
    }
}

fn items(items: Vec<Vec<Block>>) -> impl IntoView {
    items
        .into_iter()
        .map(|blocks| {
            let inside = blocks
                .into_iter()
                .map(|block| match block {
                    // The only line of a tight item does not need a paragraph's margins.
                    Block::Paragraph(inner) => view! { <span class="item-line">{spans(inner)}</span> }.into_any(),
                    other => draw(other),
                })
                .collect_view();
            view! { <li>{inside}</li> }
        })
        .collect_view()
}

fn table(right: &[bool], rows: Vec<Vec<Vec<Span>>>) -> AnyView {
    let mut rows = rows.into_iter();
    let class = |column: usize| right.get(column).copied().unwrap_or(false).then_some("cell-right");
    let head = rows.next().unwrap_or_default().into_iter().enumerate();
    let head =
        head.map(|(column, cell)| view! { <th scope="col" class=class(column)>{spans(cell)}</th> }).collect_view();
    let body = rows
        .map(|row| {
            let cells = row.into_iter().enumerate();
            let cells = cells.map(|(column, cell)| view! { <td class=class(column)>{spans(cell)}</td> }).collect_view();
            view! { <tr>{cells}</tr> }
        })
        .collect_view();
    view! {
        <div class="table-scroll" tabindex="0" role="region" aria-label="Table of the answer">
            <table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>
        </div>
    }
    .into_any()
}

fn spans(list: Vec<Span>) -> AnyView {
    list.into_iter().map(span).collect_view().into_any()
}

fn span(span: Span) -> AnyView {
    match span {
        Span::Text(text) => text.into_any(),
        Span::Code(code) => view! { <code>{code}</code> }.into_any(),
        Span::Strong(inner) => view! { <strong>{spans(inner)}</strong> }.into_any(),
        Span::Emphasis(inner) => view! { <em>{spans(inner)}</em> }.into_any(),
        Span::Struck(inner) => view! { <s>{spans(inner)}</s> }.into_any(),
        Span::Link(address, inner) => {
            view! { <a href=address target="_blank" rel="noopener noreferrer nofollow">{spans(inner)}</a> }.into_any()
        }
        Span::Break => view! { <br /> }.into_any(),
    }
}
