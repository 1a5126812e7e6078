//! Two products of one vector in one dispatch, their matrices of two formats: the source of `fused.wgsl` for each, in one
//! module.

use std::collections::BTreeSet;

use super::{Job, Kernel};
use crate::params;

/// Marks the names of the second product; templates number theirs.
const MARK: &str = "_of_second";

/// A declaration of a module: all its lines, its name if it has one, and whether another module's equal one does the same.
struct Item {
    text: String,
    name: Option<String>,
    shared: bool,
}

impl Kernel {
    /// Formats of matrices that are computed together in one dispatch: in files of mixed types, those of values, and those of
    /// a delta net's inputs; and two routers, which lie in two buffers.
    pub const JOINED: [(crate::Format, crate::Format); 4] = [
        (crate::Format::F32, crate::Format::F32),
        (crate::Format::Q4_K, crate::Format::Q6_K),
        (crate::Format::Q5_K, crate::Format::Q4_K),
        (crate::Format::Q5_K, crate::Format::Q6_K),
    ];

    /// The two products of a joined kernel.
    pub fn parts(self) -> Option<[Kernel; 2]> {
        let Self::Joined { first, second, variant, dots } = self else { return None };
        Some([first, second].map(|format| Self::Fused { format, rows: 1, job: Job::Normed, variant, dots }))
    }
}

/// The source of two products, of which the workgroups after the first one's compute the second.
pub(super) fn source([first, second]: [Kernel; 2]) -> String {
    let (one, two) = (items(&first.source()), items(&second.source()));
    let known: BTreeSet<&str> = one.iter().filter(|item| item.shared).map(|item| item.text.as_str()).collect();
    let own: Vec<&Item> = two.iter().filter(|item| !(item.shared && known.contains(item.text.as_str()))).collect();
    let names: BTreeSet<&str> = own.iter().filter_map(|item| item.name.as_deref()).collect();
    let uniform = |item: &&Item| item.name.as_deref() != Some("params");
    let mut out = String::from(
        "struct Both { first: Params, @align(16) second: Params }\n@group(0) @binding(0) var<uniform> both: Both;\n",
    );
    for item in one.iter().filter(uniform) {
        out += &words(&item.text, |word| match word {
            "params" => Some("both.first".into()),
            "main" => Some("first_main".into()),
            _ => None,
        });
    }
    let bindings = first.bindings().len() + 1;
    for item in own.into_iter().filter(|item| uniform(item)) {
        let text = item.text.replace("@binding(1)", &format!("@binding({bindings})"));
        out += &words(&text, |word| match word {
            "params" => Some("both.second".into()),
            "main" => Some("second_main".into()),
            _ => names.contains(word).then(|| format!("{word}{MARK}")),
        });
    }
    let (threads, rows) = (first.threads(), first.matrix_rows());
    out += &format!(
        "@compute @workgroup_size({threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {{
    let tile = group.x + group.y * groups.x;
    let bound = (both.first.rows + {rows}u - 1u) / {rows}u;
    if (tile < bound) {{
        first_main(vec3<u32>(tile, 0u, group.z), local, vec3<u32>(1u));
    }} else {{
        second_main(vec3<u32>(tile - bound, 0u, group.z), local, vec3<u32>(1u));
    }}
}}
"
    );
    out
}

/// The declarations of a module, without its entry point's attributes. A declaration ends where its braces do.
fn items(source: &str) -> Vec<Item> {
    let mut all = Vec::new();
    let (mut text, mut depth) = (String::new(), 0i32);
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or("").trim_end();
        if code.is_empty() || code.starts_with("@compute") {
            continue;
        }
        text += code;
        text.push('\n');
        depth += code.matches('{').count() as i32 - code.matches('}').count() as i32;
        if depth == 0 && (code.ends_with(';') || code.ends_with('}')) {
            all.push(item(std::mem::take(&mut text)));
        }
    }
    all
}

fn item(text: String) -> Item {
    let text = text
        .replace("@builtin(workgroup_id) ", "")
        .replace("@builtin(local_invocation_index) ", "")
        .replace("@builtin(num_workgroups) ", "");
    let mut before = text.split(['(', ':', '{', '=']).next().unwrap_or("");
    if text.starts_with('@') {
        // After the attributes: `var<storage, read> x: …`.
        before = text.split("var<").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or("");
    }
    let name = before.split_whitespace().last().map(str::to_owned);
    // Functions read their own product's uniform, and the first binding is its weights; all else is the same wherever its
    // text is.
    let shared = !text.starts_with("fn ") && !text.contains("@binding(1)");
    Item { text, name, shared }
}

/// Replaces the identifiers for which there is something else.
fn words(text: &str, other: impl Fn(&str) -> Option<String>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..].find(|c| !is_part(c)).map_or(rest.len(), |len| start + len);
        let word = &rest[start..end];
        out += &rest[..start];
        out += &other(word).unwrap_or_else(|| word.to_owned());
        rest = &rest[end..];
    }
    out + rest
}

/// The uniform of a joined kernel: those of its products, each at a multiple of 16 bytes.
pub fn joined_params(first: &params::Fused, second: &params::Fused) -> Vec<u8> {
    let mut bytes = Vec::new();
    for params in [first, second] {
        bytes.extend_from_slice(bytemuck::bytes_of(params));
        bytes.resize(bytes.len().next_multiple_of(16), 0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{items, words};

    #[test]
    fn a_module_falls_into_its_declarations() {
        let source = "struct A { x: u32 }\n// About it.\n@group(0) @binding(1) var<storage, read> w: array<u32>;\n\
                      const B = 3u;\nfn f(x: u32) -> u32 {\n    if (x > B) {\n        return 1u;\n    }\n    return x; // Else.\n}\n\
                      @compute @workgroup_size(8)\nfn main(@builtin(workgroup_id) group: vec3<u32>,\n        a: u32) {\n}\n";
        let all = items(source);
        let names: Vec<_> = all.iter().map(|item| item.name.as_deref().unwrap_or("")).collect();
        assert_eq!(names, ["A", "w", "B", "f", "main"]);
        assert_eq!(all.iter().map(|item| item.shared).collect::<Vec<_>>(), [true, false, true, false, false]);
        assert_eq!(all[4].text, "fn main(group: vec3<u32>,\n        a: u32) {\n}\n");
    }

    #[test]
    fn only_whole_words_are_replaced() {
        let other = |word: &str| (word == "params").then(|| "both.first".to_owned());
        assert_eq!(words("params.rows + my_params (params)", other), "both.first.rows + my_params (both.first)");
    }
}
