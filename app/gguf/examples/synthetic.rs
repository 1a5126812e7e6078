//! Writes a synthetic model:
//! `cargo run --release -p potluck-gguf --example synthetic -- --arch qwen3moe --type Q4_K OUT`.
//!
//! `--shape llama-3.2-1b` begins with a published model's sizes, in `Q4_K_M` and with random blocks: benchmarks run on
//! these. `--shape qwen3-30b-a3b --blocks 4` cuts one.
//!
//! Every field of `synthetic::Synthetic` is an option (`--hidden 2048 --fill blocks --rope-base 1000000 --tied true`),
//! and so are `--arch NAME`, `--type TYPE` (embedding, weights and head at once), `--spec FILE` (a description in JSON
//! that later options change) and `--print` (writes the description to the standard output, and no model).

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use potluck_gguf::synthetic::{Shape, Synthetic};
use serde_json::{Map, Value};

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let mut fields = Map::new();
    let mut out = None;
    let mut print = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix("--") else {
            out = Some(argument);
            continue;
        };
        if option == "print" {
            print = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("--{option} needs a value."))?;
        match option {
            "arch" => set(&mut fields, "architecture", &value),
            "type" => ["weights", "embedding", "head"].into_iter().for_each(|field| set(&mut fields, field, &value)),
            "shape" => fields.extend(described(shape(&value)?)?),
            "spec" => fields.extend(serde_json::from_slice::<Map<_, _>>(&std::fs::read(value)?)?),
            _ => set(&mut fields, &option.replace('-', "_"), &value),
        }
    }
    let model: Synthetic = serde_json::from_value(Value::Object(fields))?;
    if print {
        println!("{}", serde_json::to_string_pretty(&model)?);
        return Ok(());
    }
    let out = out.ok_or("Say which file to write.")?;
    let header = model.write_to(BufWriter::with_capacity(1 << 20, File::create(&out)?))?;
    println!("{out}: {} tensors, {} bytes", header.tensors.len(), header.required_length());
    Ok(())
}

fn shape(name: &str) -> Result<Synthetic, Error> {
    let names = || Shape::ALL.map(Shape::name).join(", ");
    Ok(Shape::from_name(name)
        .ok_or_else(|| format!("There is no shape {name:?}; there are: {}.", names()))?
        .synthetic())
}

/// All fields of a description.
fn described(model: Synthetic) -> Result<Map<String, Value>, Error> {
    Ok(serde_json::from_value(serde_json::to_value(model)?)?)
}

/// Numbers and truth values become such, anything else a text.
fn set(fields: &mut Map<String, Value>, field: &str, value: &str) {
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    fields.insert(field.to_string(), value);
}
