//! The program: parses, runs, exits with the right code.

fn main() {}
