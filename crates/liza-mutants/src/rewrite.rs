//! A source file with a switch at each of its mutants, and the module that the switches ask.

use std::ops::Range;

use crate::find::{Form, Mutant};

/// The variable with the number of the mutant that is on.
pub const CHOSEN: &str = "LIZA_MUTANT";

/// The variable with the file that gets the number of each mutant that is reached.
pub const REACHED: &str = "LIZA_MUTANT_REACHED";

/// The module that the switches ask, for numbers below `count`.
pub fn switch_module(count: usize) -> String {
    format!(
        r#"
use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{{AtomicBool, Ordering}};

static CHOSEN: LazyLock<usize> =
    LazyLock::new(|| std::env::var("{CHOSEN}").ok().and_then(|number| number.parse().ok()).unwrap_or(usize::MAX));
static FILE: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("{REACHED}"));
static SEEN: [AtomicBool; {count}] = [const {{ AtomicBool::new(false) }}; {count}];

pub(crate) fn is(number: usize) -> bool {{
    if let Some(path) = FILE.as_ref() && !SEEN[number].swap(true, Ordering::Relaxed) {{
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{{number}}\n").as_bytes()).unwrap();
    }}
    *CHOSEN == number
}}
"#
    )
}

/// The text with the switches of these numbered mutants, which are in the order of [`crate::find::mutants`].
pub fn rewritten(text: &str, mutants: &[(usize, &Mutant)]) -> String {
    render(text, 0..text.len(), mutants)
}

fn render(text: &str, range: Range<usize>, mutants: &[(usize, &Mutant)]) -> String {
    let (mut out, mut at, mut rest) = (String::new(), range.start, mutants);
    while let Some(((number, mutant), others)) = rest.split_first() {
        let place = &mutant.range;
        let is_inside = |other: &&(usize, &Mutant)| {
            other.1.range.start >= place.start
                && other.1.range.end <= place.end
                && (other.1.range.start < place.end || place.is_empty())
        };
        let (inside, after) = others.split_at(others.iter().take_while(is_inside).count());
        out.push_str(&text[at..place.start]);
        // Only one mutant is on, so what replaces the text needs no switches.
        let old = render(text, place.clone(), inside);
        out.push_str(&switch(*number, mutant, &old));
        (at, rest) = (place.end, after);
    }
    out + &text[at..range.end]
}

/// The comments around it let an error of the compiler find its mutant.
fn switch(number: usize, mutant: &Mutant, old: &str) -> String {
    let is = format!("crate::mutant::is({number})");
    let new = &mutant.new;
    let code = match mutant.form {
        Form::Expression => format!("(if {is} {{ {new} }} else {{ {old} }})"),
        Form::Statement => format!("if !{is} {{ {old} }}"),
        Form::Body => format!("if {is} {{ return {new}; }}"),
    };
    let tail = if mutant.form == Form::Body { old } else { "" };
    format!("/*<{number}*/{code}/*{number}>*/{tail}")
}

/// The innermost mutant around a place of a rewritten text.
pub fn mutant_at(rewritten: &str, place: Range<usize>) -> Option<usize> {
    let starts = rewritten[..place.start].rmatch_indices("/*<");
    let numbers = starts.filter_map(|(at, _)| {
        let number: usize = rewritten[at + 3..].split("*/").next()?.parse().ok()?;
        let end = rewritten[at..].find(&format!("/*{number}>*/"))?;
        (at + end >= place.start).then_some(number)
    });
    numbers.into_iter().next()
}
