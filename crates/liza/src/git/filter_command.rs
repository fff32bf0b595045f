//! Which commands of filters can run where an agent's files are.
//!
//! Git starts a filter in the checkout. `python -m NAME`, a shell script of the project or a formatter with settings in
//! JavaScript would run what the agent has put there, outside of its session. So only programs run there that load nothing
//! from the folder in which they start. Decides from text; runs nothing.

use std::path::Path;

/// Programs on the search path that are known to load nothing from the folder in which they start.
const KNOWN: [&str; 34] = [
    "git-lfs",
    "git-crypt",
    "git-annex",
    "gpg",
    "gpg2",
    "openssl",
    "age",
    "cat",
    "tac",
    "rev",
    "tr",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "cut",
    "sort",
    "uniq",
    "head",
    "tail",
    "expand",
    "unexpand",
    "fold",
    "iconv",
    "base64",
    "gzip",
    "gunzip",
    "xz",
    "zstd",
    "dos2unix",
    "unix2dos",
    "jq",
    "nbstripout",
    "false",
];

/// Subcommands of git itself that are such programs.
const OF_GIT: [&str; 3] = ["lfs", "crypt", "annex"];

/// Options with which the text tools above take their program from a file.
const FROM_FILE: [&str; 5] = ["-f", "--file", "--from-file", "-L", "-l"];

/// Programs that run what their arguments, or the folder around, tell them.
const INTERPRETERS: [&str; 40] = [
    "ash", "bash", "bun", "cargo", "dash", "deno", "env", "fish", "git", "gmake", "go", "java", "julia",
    "just", "ksh", "lua", "make", "nice", "node", "nodejs", "npm", "npx", "perl", "php", "pipenv", "pipx",
    "pnpm", "poetry", "pypy", "python", "ruby", "sh", "sudo", "tclsh", "timeout", "uv", "uvx", "xargs",
    "yarn", "zsh",
];

/// Whether a command loads nothing from the folder in which it starts, as far as can be told from its text: programs that are
/// known, or that an absolute path outside of the project names.
pub(super) fn loads_nothing_from_here(command: &str, root: &Path) -> bool {
    let Some(programs) = words_of(command) else { return false };
    !programs.is_empty() && programs.iter().all(|words| is_safe(words, root))
}

fn is_safe(words: &[String], root: &Path) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let is_text = |word: &String| !FROM_FILE.iter().any(|option| word.starts_with(option));
    let first = arguments.first().map(String::as_str).unwrap_or_default();
    match program.rsplit_once('/') {
        None if program == "git" => OF_GIT.contains(&first),
        None => KNOWN.contains(&program.as_str()) && arguments.iter().all(is_text),
        Some((_, name)) => {
            let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            let inside = Path::new(program).starts_with(root);
            program.starts_with('/') && !inside && !INTERPRETERS.contains(&plain) && !program.contains("/../")
        }
    }
}

/// The programs of a shell command with their arguments; none if the shell would do more than start them.
fn words_of(command: &str) -> Option<Vec<Vec<String>>> {
    let mut programs = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            quote @ ('\'' | '"') => quoted(&mut letters, quote, word.get_or_insert_default())?,
            '$' | '`' | '\\' | '(' | ')' | '<' | '>' | '&' | ';' | '{' | '}' | '*' | '?' | '[' | '~'
            | '#' | '\n' => {
                return None;
            }
            '|' => {
                programs.last_mut()?.extend(word.take());
                programs.push(Vec::new());
            }
            space if space.is_whitespace() => programs.last_mut()?.extend(word.take()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    programs.last_mut()?.extend(word);
    Some(programs)
}

/// Adds the rest of a quoted text to a word; none if the shell would put something else there.
fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            letter if letter == quote => return Some(()),
            '$' | '`' | '\\' if quote == '"' => return None,
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-08
    #[test]
    fn only_programs_that_load_nothing_from_the_checkout_run_there() {
        let root = Path::new("/home/ada/shop");
        for own in [
            "git-lfs clean -- %f",
            "git lfs smudge -- '%f'",
            "tr a-z b-za",
            "sed s/work/fixed/",
            "sed -e 's/a$/b/' | cat",
            "/usr/local/bin/strip %f",
            "\"/opt/my tools/clean\" %f",
            "nbstripout",
        ] {
            assert!(loads_nothing_from_here(own, root), "{own}");
        }
        for other in [
            "",
            "|",
            "python3 -m nbstripout",
            "\"/usr/bin/python3.12\" -m nbstripout",
            "\"$(git rev-parse --show-toplevel)/tools/clean.sh\"",
            "tools/clean",
            "./clean",
            "/home/ada/shop/tools/clean",
            "/opt/../home/ada/shop/clean",
            "npm run clean",
            "make -s clean",
            "prettier --stdin-filepath %f",
            "cat; ./clean",
            "cat | ./clean",
            "sed -f clean.sed",
            "A=1 cat",
            "~/clean",
            "git clean-it",
            "cat 'open",
        ] {
            assert!(!loads_nothing_from_here(other, root), "{other}");
        }
    }
}
