//! Prints what a GGUF file says of itself, and reads no more of it than its header:
//! `cargo run -p potluck-gguf --example header -- public/models/potluck-small-Q4_K_M.gguf`.

use std::error::Error;
use std::fs::File;
use std::io::Read;

use potluck_gguf::{Header, HeaderParser, Progress, Value, quantization};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("Say which file to read.")?;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let header = read_header(&mut file, length)?;
    header.check_length(length)?;

    for (key, value) in header.metadata.iter() {
        match value {
            Value::String(text) => println!("{key} = {:?}", text.chars().take(60).collect::<String>()),
            // Vocabularies have hundreds of thousands of elements.
            Value::Array(_) => println!("{key} = an array"),
            number => println!("{key} = {number:?}"),
        }
    }
    for tensor in &header.tensors {
        println!("{:32} {:6} {:?}, {} bytes at {}", tensor.name, tensor.kind, tensor.dims, tensor.bytes, tensor.offset);
    }
    let name = quantization(&header.metadata, &header.tensors).unwrap_or_default();
    println!("{} tensors, quantization {name}", header.tensors.len());
    Ok(())
}

/// Pushes pieces until the header is complete. Bytes from the network would be pushed in the same way.
fn read_header(file: &mut File, length: u64) -> Result<Header, Box<dyn Error>> {
    let mut parser = HeaderParser::with_length(length);
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Err("The file ends inside its header.".into());
        }
        if let Progress::Done(header) = parser.push(&piece[..read])? {
            return Ok(*header);
        }
    }
}
