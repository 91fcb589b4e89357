//! Run one HTTP load: the order as JSON on standard input, the result as JSON on standard output.

use chainmark_load::http::{HttpLoad, LoadConfig};
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let load = HttpLoad::new(LoadConfig::from_json(&text)?)?;
    load.start()?;
    println!("{}", serde_json::to_string(&load.finish()?)?);
    Ok(())
}
