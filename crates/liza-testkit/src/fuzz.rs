//! A small deterministic fuzzer: mutations of the files in `corpora/TARGET/`, each by its seed and number. Seconds in the gate;
//! `just fuzz SECONDS SEED` goes on for longer.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The number of cases without a time.
const CASES: u64 = 1_500;

/// The longest time for one case, on a busy machine.
const CASE_LIMIT: Duration = Duration::from_secs(30);

/// The largest input.
const INPUT_MAX: usize = 64 << 10;

/// Pieces that parsers treat in a special way.
const WORDS: [&[u8]; 34] = [
    b"\n",
    b"\r\n",
    b"\t",
    b"\0",
    b" ",
    b": ",
    b"- ",
    b"# ",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"\"",
    b"'",
    b"\\",
    b"&a ",
    b"*a",
    b"|\n",
    b"!!str ",
    b"---\n",
    b"null",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    b"\\ud800",
    b"%00",
    b"%",
    b"..",
    b"/",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"9999-99-99T99:99:99Z",
];

/// Numbers that follow from a seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the limit; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    fn range(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..(start + self.below(most + 1)).min(length)
    }
}

/// Runs the check on mutated inputs; it panics if one is treated wrongly. One that takes too long fails too.
pub fn fuzz(target: &'static str, mut check: impl FnMut(&[u8], &mut Dice) + Send + 'static) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (seed, only) = (number("LIZA_FUZZ_SEED").unwrap_or(1), number("LIZA_FUZZ_CASE"));
    let end = number("LIZA_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let corpus = corpus(target);
    let (sender, started) = channel();
    let runner = thread::spawn(move || {
        let cases = only.map_or(0..u64::MAX, |only| only..only + 1);
        for case in
            cases.take_while(|case| end.map_or(*case < CASES, |end| Instant::now() < end) || only.is_some())
        {
            let _ = sender.send(case);
            let mut dice = Dice(seed ^ case.wrapping_mul(0xd134_2543_de82_ef95));
            let input = input(&corpus, case, &mut dice);
            let checked = catch_unwind(AssertUnwindSafe(|| check(&input, &mut dice)));
            if let Err(panic) = checked {
                eprintln!("{target}, {} bytes: {}", input.len(), input.escape_ascii());
                resume_unwind(panic);
            }
        }
    });
    let again =
        |case: u64| format!("again: LIZA_FUZZ_SEED={seed} LIZA_FUZZ_CASE={case} just test fuzz_{target}");
    let mut last = 0;
    loop {
        match started.recv_timeout(CASE_LIMIT) {
            Ok(case) => last = case,
            Err(RecvTimeoutError::Timeout) => panic!("{target}: a case takes too long; {}", again(last)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(runner.join().is_ok(), "{target}: {}", again(last));
    eprintln!("{target}: {} cases from seed {seed}", last + 1);
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The files themselves come first.
fn input(corpus: &[Vec<u8>], case: u64, dice: &mut Dice) -> Vec<u8> {
    let whole = usize::try_from(case).ok().and_then(|case| corpus.get(case));
    let Some(whole) = whole else {
        let mut input = corpus[dice.below(corpus.len())].clone();
        for _ in 0..=dice.below(6) {
            mutate(&mut input, corpus, dice);
        }
        input.truncate(INPUT_MAX);
        return input;
    };
    whole.clone()
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], dice: &mut Dice) {
    let (length, at) = (input.len(), dice.below(input.len() + 1));
    match dice.below(9) {
        0 if at < length => input[at] ^= 1 << dice.below(8),
        1 => input.insert(at, dice.below(256) as u8),
        2 => drop(input.drain(dice.range(length, 40))),
        3 => insert(input, at, WORDS[dice.below(WORDS.len())]),
        4 => {
            let range = dice.range(length, 8);
            input.splice(range, WORDS[dice.below(WORDS.len())].iter().copied());
        }
        // The same again and again: depth and length.
        5 => {
            let piece = input[dice.range(length, 12)].repeat(1 + dice.below(40));
            insert(input, at, &piece);
        }
        6 => {
            let piece = WORDS[dice.below(WORDS.len())].repeat(dice.below(20_000));
            insert(input, at, &piece);
        }
        7 => {
            let other = &corpus[dice.below(corpus.len())];
            let piece = other[dice.range(other.len(), 200)].to_vec();
            insert(input, at, &piece);
        }
        _ => input.truncate(at),
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}
