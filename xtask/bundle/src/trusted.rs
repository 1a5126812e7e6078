//! Trusted Types: in the page, only one policy can turn strings into markup or the address of a script.
//!
//! The relay's content security policy (`relay/src/page/csp.rs`) refuses every string that is given to `innerHTML`, `new Worker`
//! and the like, unless a policy with this name has made it. The policy is made here, in the JavaScript that wasm-bindgen writes,
//! and nothing outside that module can reach it. It lets through what was compiled in: the framework's templates are string
//! literals, which lie in the program's read-only data; text that the program made or received lies elsewhere.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};

/// The code that wasm-bindgen writes where a string becomes markup or the address of a script, and its replacement.
const SINKS: [(&str, &str); 3] = [
    ("arg0.innerHTML = getStringFromWasm0(arg1, arg2);", "setTemplate(arg0, arg1, arg2);"),
    ("new Worker(getStringFromWasm0(arg0, arg1))", "new Worker(ownScript(getStringFromWasm0(arg0, arg1)))"),
    ("new SharedWorker(getStringFromWasm0(arg0, arg1))", "new SharedWorker(ownScript(getStringFromWasm0(arg0, arg1)))"),
];

/// Other ways to do the same. A program that uses one of them is refused, so that somebody decides how to handle it.
const REFUSED: [&str; 12] = [
    ".innerHTML",
    ".outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "srcdoc",
    "createContextualFragment",
    "parseFromString",
    "setHTMLUnsafe",
    "eval(",
    "new Function(",
    "importScripts(",
    "execCommand",
];

/// The page's JavaScript with its policy. `program` is the WebAssembly that belongs to it, `scripts` are the names of the files
/// that it may start as workers.
///
/// # Errors
/// wasm-bindgen's output has changed, or the program has an unknown way to create markup.
pub fn guard(glue: &str, program: &[u8], scripts: &[&str]) -> Result<String> {
    let data = read_only_data(program).context("cannot find the read-only data of the program")?;
    let mut guarded = glue.to_owned();
    for (sink, instead) in SINKS {
        ensure!(glue.matches(sink).count() == 1, "wasm-bindgen writes {sink:?} otherwise, or not once");
        guarded = guarded.replace(sink, instead);
    }
    if let Some(way) = REFUSED.iter().find(|way| calls(&guarded, way)) {
        bail!("the page's program uses {way:?}, which makes markup or programs of strings");
    }
    guarded.push_str(&POLICY.replace("START", &data.start.to_string()).replace("END", &data.end.to_string()));
    Ok(guarded.replace("SCRIPTS", &format!("{scripts:?}")))
}

/// Whether the text contains this word, not merely as the end of a longer one.
fn calls(text: &str, word: &str) -> bool {
    let is_alone = |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    text.match_indices(word).any(|(at, _)| word.starts_with('.') || is_alone(at))
}

const POLICY: &str = "
// In this page, strings become markup or the address of a script here alone.
// Its scripts lie in the folder of this module, whatever a base element says.
const folder = new URL('.', import.meta.url);
const rules = {
    createHTML(text, at, length) {
        if (at >= START && at + length <= END) return text;
        throw new TypeError('this text is no template of the page');
    },
    createScriptURL(text) {
        const { href } = new URL(text, folder);
        if (SCRIPTS.some((name) => href.split('?')[0] === folder.href + name)) return href;
        throw new TypeError('this address is no script of the page');
    },
};
// A browser without Trusted Types keeps to the same rules.
const trusted = globalThis.trustedTypes?.createPolicy('potluck', rules) ?? rules;

function setTemplate(element, at, length) {
    const text = getStringFromWasm0(at, length);
    try {
        element.innerHTML = trusted.createHTML(text, at >>> 0, length >>> 0);
    } catch (error) {
        console.error(error);
        element.textContent = text;
    }
}

function ownScript(text) {
    return trusted.createScriptURL(text);
}
";

/// Where the program's read-only data lies in its memory: the first of its data segments, as linkers order them.
fn read_only_data(program: &[u8]) -> Option<Range<u32>> {
    const DATA: u8 = 11;
    let mut bytes = Reader(program.get(8..)?);
    loop {
        let section = bytes.byte()?;
        let length = bytes.unsigned()?;
        let mut content = Reader(bytes.take(length)?);
        if section != DATA {
            continue;
        }
        let segments = content.unsigned()?;
        // An active segment of the first memory, at a constant place: `i32.const PLACE end`.
        if segments == 0 || content.unsigned()? != 0 || content.byte()? != 0x41 {
            return None;
        }
        let start = content.unsigned()?;
        return (content.byte()? == 0x0b)
            .then_some(())
            .and_then(|()| Some(start..start.checked_add(content.unsigned()?)?));
    }
}

/// Reads WebAssembly's binary format (its specification, 5.2).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, length: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// A LEB128 number. Places in memory are signed there; those of data are far below the half of 4 GiB, where both are read alike.
    fn unsigned(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).ok();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A program with an empty custom section and five bytes of data from 1 MiB on.
    const PROGRAM: &[u8] = b"\0asm\x01\0\0\0\x00\x02\x01n\x0b\x0d\x01\x00\x41\x80\x80\xc0\x00\x0b\x05hello";

    fn glue() -> String {
        SINKS.map(|(sink, _)| format!("x() {{ {sink} }}\n")).concat()
    }

    #[test]
    fn the_read_only_data_is_the_first_segment() {
        assert_eq!(read_only_data(PROGRAM), Some(1 << 20..(1 << 20) + 5));
        assert_eq!(read_only_data(b"\0asm\x01\0\0\0"), None);
    }

    #[test]
    fn every_string_that_becomes_markup_or_a_script_goes_by_the_policy() {
        let guarded = guard(&glue(), PROGRAM, &["node_loader.js"]).unwrap();
        assert!(guarded.contains("at >= 1048576 && at + length <= 1048581"), "{guarded}");
        assert!(guarded.contains("[\"node_loader.js\"].some((name) =>"), "{guarded}");
        assert_eq!(guarded.matches(".innerHTML =").count(), 1, "{guarded}");
        assert!(!guarded.contains("Worker(getStringFromWasm0"), "{guarded}");
    }

    #[test]
    fn other_ways_to_markup_stop_the_build() {
        for line in ["arg0.outerHTML = text;", "arg0.innerHTML = arg1;", "return eval(text);", "new Function(text)"] {
            assert!(guard(&format!("{}{line}", glue()), PROGRAM, &[]).is_err(), "{line}");
        }
        assert!(guard(&format!("{}makeMutClosure(a); return `Function(${{name}})`;", glue()), PROGRAM, &[]).is_ok());
        assert!(guard("", PROGRAM, &[]).is_err(), "a wasm-bindgen that writes something else");
    }
}
