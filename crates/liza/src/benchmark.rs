//! Measured parts of the inside of the program, for the benchmarks.

use liza_agents::providers::event::EventFormat;
use liza_agents::providers::stream::EventStream;
use liza_host::secrets::{MaskStream, Masker};

/// The size of the pieces in which output arrives.
const CHUNK: usize = 64 << 10;

/// Reads the output of a program in this format; the number of events.
pub fn events(format: &str, output: &[u8]) -> usize {
    let format = format.parse::<EventFormat>().unwrap_or_default();
    let (mut stream, mut count) = (EventStream::new(format), 0);
    output.chunks(CHUNK).for_each(|chunk| stream.push(chunk, &mut |_| count += 1));
    stream.finish(&mut |_| count += 1);
    count
}

/// Masks an output; the number of bytes that would be stored.
pub fn masked(output: &[u8]) -> usize {
    let mut stream = MaskStream::new(Masker::of_process());
    let kept: usize = output.chunks(CHUNK).map(|chunk| stream.push(chunk).len()).sum();
    kept + stream.finish().len()
}
