//! The tests in a file's text, found by one table of languages. A reader of lines, not a parser: it serves the
//! facts about a change, and decides nothing by itself.

/// A test, or a group of tests that is skipped as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundTest {
    pub name: String,
    /// Its attributes, its first line and its body, without indentation.
    pub text: String,
    pub is_skipped: bool,
    pub is_group: bool,
}

/// Patterns of one language. Those of tests and groups begin a line: `*` matches anything but quotes, and the
/// name begins at `|`.
struct Language {
    extensions: &'static [&'static str],
    comment: &'static str,
    /// Begins a line that belongs to the declaration below it.
    attribute: Option<&'static str>,
    /// Attributes that make a test of the function below; without any, its own line does.
    marks: &'static [&'static str],
    tests: &'static [&'static str],
    groups: &'static [&'static str],
    /// Skips a test, in its attributes or before the first quote of its line.
    skips: &'static [&'static str],
    /// Skips a test, in its body.
    skips_inside: &'static [&'static str],
}

const TABLE: [Language; 5] = [
    Language {
        extensions: &["rs"],
        comment: "//",
        attribute: Some("#["),
        marks: &["#[test]", "::test]", "::test(", "#[rstest", "#[test_case", "#[quickcheck", "_test]"],
        tests: &["*fn |"],
        groups: &["mod |", "pub mod |"],
        skips: &["#[ignore", ", ignore", "cfg(any())", "cfg(false)", "cfg(FALSE)"],
        skips_inside: &[],
    },
    Language {
        extensions: &["py"],
        comment: "#",
        attribute: Some("@"),
        marks: &[],
        tests: &["def |test", "async def |test"],
        groups: &["class |", "|pytestmark"],
        skips: &["mark.skip", "mark.xfail", "unittest.skip", "@skip", "expectedFailure"],
        skips_inside: &["pytest.skip(", "pytest.xfail(", "self.skipTest(", "SkipTest"],
    },
    Language {
        extensions: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
        comment: "//",
        attribute: Some("@"),
        marks: &[],
        tests: &[
            "it(|",
            "it.each|",
            "it.skip|",
            "it.only|",
            "it.todo|",
            "it.fail|",
            "it.concurrent|",
            "test(|",
            "test.each|",
            "test.skip|",
            "test.only|",
            "test.todo|",
            "test.fail|",
            "test.fixme|",
            "test.concurrent|",
            "xit(|",
            "xtest(|",
            "fit(|",
            "specify(|",
            "Deno.test|",
        ],
        groups: &["describe|", "xdescribe(|", "fdescribe(|", "test.describe|", "suite|"],
        skips: &[
            ".skip",
            ".todo",
            ".only",
            ".fixme",
            ".ignore",
            "xit(",
            "xtest(",
            "fit(",
            "xdescribe(",
            "fdescribe(",
        ],
        skips_inside: &["this.skip(", "t.skip(", "ctx.skip(", "test.skip("],
    },
    Language {
        extensions: &["go"],
        comment: "//",
        attribute: None,
        marks: &[],
        tests: &["func |Test", "func |Fuzz", "func (*) |Test"],
        groups: &[],
        skips: &[],
        skips_inside: &["t.Skip(", "t.Skipf(", "t.SkipNow(", "f.Skip(", "T().Skip("],
    },
    Language {
        extensions: &["sh", "bash", "bats"],
        comment: "#",
        attribute: None,
        marks: &[],
        tests: &["@test |", "function |test", "|test*()"],
        groups: &[],
        skips: &[],
        skips_inside: &["skip", "startSkipping"],
    },
];

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// True if tests in a file of this name can be found.
pub fn has_language(path: &str) -> bool {
    language(path).is_some()
}

fn language(path: &str) -> Option<&'static Language> {
    let (_, extension) = path.rsplit_once('.')?;
    TABLE
        .iter()
        .find(|language| language.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

/// The tests of a file, in its order.
pub(super) fn tests_in(path: &str, text: &str) -> Vec<FoundTest> {
    let Some(language) = language(path) else { return Vec::new() };
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let (mut attributes, mut is_comment) = (String::new(), false);
    for (number, whole) in lines.iter().enumerate() {
        let mut line = whole.trim();
        is_comment |= language.comment == "//" && line.starts_with("/*");
        if is_comment {
            is_comment = !line.contains("*/");
            continue;
        }
        if line.is_empty() || line.starts_with(language.comment) {
            continue;
        }
        // One that is still open goes on in this line.
        if depth(&attributes) > 0 {
            attributes.push_str(line);
            continue;
        }
        if language.attribute.is_some_and(|start| line.starts_with(start)) {
            let rest = rest_after_attributes(line);
            attributes.push_str(line.strip_suffix(rest).unwrap_or(line));
            line = rest;
        }
        if !line.is_empty() {
            let below = lines.get(number + 1..).unwrap_or_default();
            found.extend(declared(language, &attributes, (whole, line), below));
            attributes.clear();
        }
    }
    found
}

/// The declaration in the same line as the attributes of Rust.
fn rest_after_attributes(mut line: &str) -> &str {
    while line.starts_with("#[") {
        line = line.split_once("] ").map_or("", |(_, rest)| rest.trim_start());
    }
    if line.starts_with('@') { "" } else { line }
}

/// The number of open brackets.
fn depth(text: &str) -> i64 {
    text.chars().fold(0, |depth, c| match c {
        '(' | '[' | '{' => depth + 1,
        ')' | ']' | '}' => depth - 1,
        _ => depth,
    })
}

/// The test or the skipped group that a line declares.
fn declared(
    language: &Language,
    attributes: &str,
    (whole, line): (&str, &str),
    below: &[&str],
) -> Option<FoundTest> {
    let is_marked = language.marks.is_empty() || has_any(attributes, language.marks);
    let test = language.tests.iter().find_map(|start| name_after(line, start)).filter(|_| is_marked);
    let is_group = test.is_none();
    let rest = test.or_else(|| language.groups.iter().find_map(|start| name_after(line, start)))?;
    let body = if is_group { Vec::new() } else { body(whole, below) };
    let before_quote = line.split(QUOTES).next().unwrap_or_default();
    let inside = body.iter().copied().filter(|line| !line.starts_with(language.comment));
    let mut inside = inside.chain(line.rsplit(QUOTES).next());
    let is_skipped = has_any(attributes, language.skips)
        || has_any(before_quote, language.skips)
        || inside.any(|line| language.skips_inside.iter().any(|word| has_word(line, word)));
    if is_group && !is_skipped {
        return None;
    }
    let name = if rest.is_empty() { below.first().map_or("", |line| line.trim()) } else { rest };
    let text = format!("{attributes}\n{line}\n{}", body.join("\n"));
    Some(FoundTest { name: short_name(name).to_owned(), text, is_skipped, is_group })
}

/// The line from its name on, if it begins with the pattern.
fn name_after<'l>(line: &'l str, pattern: &str) -> Option<&'l str> {
    let (before, name) = pattern.split_once('|')?;
    let rest = after(line, before)?;
    after(rest, name).map(|_| rest)
}

/// The rest of a text behind a pattern.
fn after<'t>(text: &'t str, pattern: &str) -> Option<&'t str> {
    let Some((first, last)) = pattern.split_once('*') else { return text.strip_prefix(pattern) };
    let (any, rest) = text.strip_prefix(first)?.split_once(last)?;
    (!any.contains(QUOTES) && !any.contains('$')).then_some(rest)
}

/// An identifier, a quoted name, or the whole text.
fn short_name(text: &str) -> &str {
    let text = text.trim();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    if text.starts_with(is_part) {
        return text.split(|c| !is_part(c)).next().unwrap_or_default();
    }
    match text.split_once(QUOTES) {
        Some((_, quoted)) => quoted.split(QUOTES).next().unwrap_or_default(),
        None => text,
    }
}

/// The lines of a body: those that are indented deeper than the first line, and the one that closes it.
fn body<'l>(first: &str, below: &[&'l str]) -> Vec<&'l str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (own, mut lines) = (indent(first), Vec::new());
    for line in below {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let is_inside = indent(line) > own || text.starts_with(')') || text == "{";
        if is_inside || text.starts_with('}') {
            lines.push(text);
        }
        if !is_inside {
            break;
        }
    }
    lines
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// True if the text has the word, not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().chars().next_back();
        let after = text.get(at + word.len()..).unwrap_or_default().chars().next();
        let is_whole = !word.ends_with(char::is_alphanumeric) || !after.is_some_and(is_part);
        is_whole && !before.is_some_and(is_part)
    })
}
