//! Prints the table as a file of Project Fluent: `cargo run --quiet --package potluck-text --example fluent`.

fn main() {
    for message in potluck_text::texts().all() {
        println!("{}", message.fluent());
    }
}
