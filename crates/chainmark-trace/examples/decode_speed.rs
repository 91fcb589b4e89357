//! Decodes log files as if they were one host's and says how fast: `decode_speed FILE...`.

use std::path::PathBuf;
use std::time::Instant;

use chainmark_trace::control::Control;
use chainmark_trace::reader::read_host;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut best_s = f64::INFINITY;
    for _ in 0..5 {
        let mut events = 0_u64;
        let begun = Instant::now();
        let books = read_host(&files, &Control::default(), &mut |_, _| events += 1)?;
        let seconds = begun.elapsed().as_secs_f64();
        best_s = best_s.min(seconds);
        let bytes: u64 = books.files.iter().map(|file| file.text_bytes).sum();
        println!(
            "{:.3} GB/s  {bytes} bytes, {} lines, {events} events, {} ignored, {} malformed, {:.1} ns a line",
            bytes as f64 / seconds / 1e9,
            books.raw_lines,
            books.ignored,
            books.malformed,
            seconds * 1e9 / books.raw_lines.max(1) as f64
        );
    }
    println!("best of five: {best_s:.4} s");
    Ok(())
}
