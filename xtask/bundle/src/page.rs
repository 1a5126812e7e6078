//! The page's folder: its files, named after their content where caches may keep them, and their links.

use std::fs;
use std::hash::Hasher;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use crate::c_functions;
use crate::manifest::{self, Request};
use crate::trusted;

/// Writes the page to `out`, which is replaced. `index` is the HTML file with the manifest, and its folder what the manifest's
/// paths start from; `compiled` holds a `.wasm` file for each program.
///
/// # Errors
/// A file that cannot be read or written, a manifest that asks for more than this program does, and WebAssembly that
/// wasm-bindgen refuses.
pub fn build(index: &Path, compiled: &Path, out: &Path) -> Result<()> {
    let html = fs::read_to_string(index).with_context(|| format!("cannot read {}", index.display()))?;
    let root = index.parent().unwrap_or(Path::new("."));
    let entries = manifest::read(&html).with_context(|| format!("in {}", index.display()))?;
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;

    let mut page = String::with_capacity(2 * html.len());
    let mut preloads = String::new();
    let mut written = 0;
    let scripts: Vec<&str> = entries.iter().filter_map(|entry| entry.request.script()).collect();
    for entry in &entries {
        page.push_str(&html[written..entry.span.start]);
        written = entry.span.end;
        match entry.request {
            Request::Copy(path) => {
                copy(&root.join(path), out, file_name(path)?)?;
            }
            Request::Css(path) => page.push_str(&style(&root.join(path), out)?),
            Request::Page(bin) => {
                let name = page_program(bin, compiled, out, &scripts)?;
                page.push_str(&start(&name));
                preloads.push_str(&preload(&name));
            }
            Request::Library(bin) => {
                let global = format!("potluck_{bin}");
                bind(Bindgen::new().no_modules(true)?.no_modules_global(&global)?, bin, compiled, out)?;
            }
            Request::Worker(bin) => bind(Bindgen::new().no_modules(true)?, bin, compiled, out)?,
        }
    }
    page.push_str(&html[written..]);
    let page = page.replacen("</head>", &format!("{preloads}</head>"), 1);
    let path = out.join("index.html");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies and links a style sheet: its tag.
fn style(path: &Path, out: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let name = format!("{stem}-{}.css", hash(&bytes));
    copy(path, out, &name)?;
    Ok(format!("<link rel=\"stylesheet\" href=\"{name}\"/>"))
}

/// Makes the page's own program, named after its content: the name without extension. It may start `scripts`.
fn page_program(bin: &str, compiled: &Path, out: &Path, scripts: &[&str]) -> Result<String> {
    let path = compiled.join(format!("{bin}.wasm"));
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = format!("{bin}-{}", hash(&bytes));
    bind(Bindgen::new().web(true)?, bin, compiled, out)?;
    let glue = out.join(format!("{bin}.js"));
    let program = fs::read(out.join(format!("{bin}_bg.wasm"))).context("cannot read the page's program")?;
    let guarded = trusted::guard(&fs::read_to_string(&glue)?, &program, scripts).context("in the page's program")?;
    fs::write(&glue, guarded).with_context(|| format!("cannot write {}", glue.display()))?;
    for end in [".js", "_bg.wasm"] {
        fs::rename(out.join(format!("{bin}{end}")), out.join(format!("{name}{end}")))
            .with_context(|| format!("cannot rename {bin}{end}"))?;
    }
    Ok(name)
}

/// Makes one program a JavaScript module in `out`, named after the program.
///
/// # Errors
/// The program cannot be read, or is not for wasm-bindgen.
pub fn module(program: &Path, out: &Path) -> Result<()> {
    let name = program.file_stem().and_then(|name| name.to_str()).context("the program has no name")?;
    let folder = program.parent().context("the program is in no folder")?;
    bind(Bindgen::new().web(true)?, name, folder, out)
}

/// Runs wasm-bindgen: writes `BIN.js` and `BIN_bg.wasm`.
fn bind(bindgen: &mut Bindgen, bin: &str, compiled: &Path, out: &Path) -> Result<()> {
    // As the wasm-bindgen program does by default.
    bindgen.omit_default_module_path(false).typescript(false);
    // A third of what people download and browsers keep in memory. Panics name their file and line all the same.
    bindgen.remove_name_section(true);
    let path = compiled.join(format!("{bin}.wasm"));
    let program = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let program = c_functions::without(&program).with_context(|| format!("in {}", path.display()))?;
    bindgen.input_module(bin, program);
    bindgen.generate(out).with_context(|| format!("wasm-bindgen cannot process the program {bin}"))
}

/// The script that starts the page.
fn start(name: &str) -> String {
    format!(
        "<script type=\"module\">\nimport init from './{name}.js';\n\
         await init({{ module_or_path: './{name}_bg.wasm' }});\n</script>"
    )
}

/// Both files are fetched at once, not the second when the first has run.
fn preload(name: &str) -> String {
    format!(
        "<link rel=\"modulepreload\" href=\"{name}.js\" crossorigin=\"anonymous\">\
         <link rel=\"preload\" href=\"{name}_bg.wasm\" crossorigin=\"anonymous\" as=\"fetch\" type=\"application/wasm\">"
    )
}

fn copy(from: &Path, out: &Path, name: &str) -> Result<()> {
    fs::copy(from, out.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn file_name(path: &str) -> Result<&str> {
    Path::new(path).file_name().and_then(|name| name.to_str()).ok_or_else(|| anyhow!("{path:?} names no file"))
}

/// A name for a content: 16 hexadecimal digits, by which the relay sees that the file can be cached for ever.
///
/// It only has to differ when the content does. That it may differ between versions of Rust as well costs one download.
fn hash(bytes: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}
