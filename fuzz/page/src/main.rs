//! In WebAssembly, what `run.mjs` calls; natively, `potluck-fuzz-page NUMBER…` reads the texts with these numbers, to see why one
//! was refused.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod web {
    use std::cell::RefCell;

    use potluck_fuzz_page::Kind;
    use wasm_bindgen::prelude::wasm_bindgen;

    thread_local! {
        static TEXT: RefCell<(Kind, String)> = const { RefCell::new((Kind::Answer, String::new())) };
    }

    /// Makes the text with this number. Its length in bytes.
    #[wasm_bindgen]
    #[must_use]
    pub fn make(number: f64) -> usize {
        let (kind, number) = (Kind::of(number as u64), number as u64);
        TEXT.replace((kind, kind.text(number)));
        TEXT.with_borrow(|(_, text)| text.len())
    }

    /// Reads the text that was made.
    #[wasm_bindgen]
    pub fn read() {
        TEXT.with_borrow(|(kind, text)| kind.read(text));
    }
}

fn main() {
    for number in std::env::args().skip(1).filter_map(|number| number.parse().ok()) {
        let kind = potluck_fuzz_page::Kind::of(number);
        let text = kind.text(number);
        let started = std::time::Instant::now();
        kind.read(&text);
        println!("{number}: {kind:?}, {} bytes, {:?}", text.len(), started.elapsed());
    }
}
