//! Filter commands that can run among an agent's files.
//!
//! Git starts a filter in the checkout. `python -m NAME`, a shell script of the project or a formatter with
//! settings in JavaScript would run the agent's code there, outside its session. So only programs run that
//! load nothing from the folder in which they start. Decides from text; runs nothing.

use std::path::Path;

/// Programs on the search path that load nothing from the folder in which they start.
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

/// Subcommands of git that are such programs.
const OF_GIT: [&str; 3] = ["lfs", "crypt", "annex"];

/// The only options with which GnuPG runs here.
const GPG_OPTIONS: [&str; 13] = [
    "-a",
    "-c",
    "-d",
    "-e",
    "-q",
    "-r",
    "--armor",
    "--batch",
    "--decrypt",
    "--encrypt",
    "--quiet",
    "--recipient",
    "--yes",
];

/// Programs above that can be made to load something, and the beginnings of their only allowed options. A
/// short option takes no others behind it: `-nf FILE` is `-n -f FILE`.
const ONLY_WITH: [(&str, &[&str]); 9] = [
    ("sed", &["-e", "-E", "-n", "-r", "-s", "-u", "-z", "--expression="]),
    ("awk", &["-F", "-v"]),
    ("gawk", &["-F", "-v"]),
    ("mawk", &["-F", "-v"]),
    ("jq", &["-a", "-c", "-j", "-M", "-r", "-S", "--tab", "--indent", "--sort-keys"]),
    ("sort", &["-b", "-d", "-f", "-k", "-n", "-r", "-t", "-u", "--key=", "--field-separator="]),
    ("gpg", &GPG_OPTIONS),
    ("gpg2", &GPG_OPTIONS),
    (
        "openssl",
        &["-a", "-aes", "-base64", "-d", "-e", "-iter", "-k", "-md", "-nosalt", "-pass", "-pbkdf2", "-S"],
    ),
];

/// Programs that run code from their arguments or the folder around them.
const INTERPRETERS: [&str; 73] = [
    "Rscript", "ash", "bash", "bun", "busybox", "cargo", "chroot", "chrt", "cmake", "dash", "deno", "doas",
    "dotnet", "ed", "elixir", "emacs", "env", "eslint", "expect", "fish", "gdb", "git", "gmake", "go",
    "groovy", "guile", "ionice", "java", "julia", "just", "ksh", "lua", "m4", "make", "nice", "ninja",
    "node", "nodejs", "nohup", "npm", "npx", "nvim", "perl", "php", "pipenv", "pipx", "pkexec", "pnpm",
    "poetry", "prettier", "pypy", "python", "racket", "ruby", "scala", "script", "setsid", "sh", "stdbuf",
    "sudo", "swift", "tcc", "tclsh", "timeout", "toybox", "unshare", "uv", "uvx", "vi", "vim", "xargs",
    "yarn", "zsh",
];

/// True if the text of a command names only known programs, or absolute paths outside the project: they load
/// nothing from the folder in which they start.
pub(crate) fn loads_nothing_from_here(command: &str, root: &Path) -> bool {
    let Some(programs) = words_of(command) else { return false };
    !programs.is_empty() && programs.iter().all(|words| is_safe(words, root))
}

fn is_safe(words: &[String], root: &Path) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let first = arguments.first().map(String::as_str).unwrap_or_default();
    match program.rsplit_once('/') {
        None if program == "git" => OF_GIT.contains(&first),
        None => KNOWN.contains(&program.as_str()) && arguments.iter().all(|word| may_have(program, word)),
        Some((_, name)) => {
            let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            let inside = Path::new(program).starts_with(root);
            program.starts_with('/')
                && !inside
                && !INTERPRETERS.contains(&plain)
                && !program.contains("/../")
                && arguments.iter().all(|word| may_have(name, word))
        }
    }
}

fn may_have(program: &str, argument: &str) -> bool {
    let Some((_, options)) = ONLY_WITH.iter().find(|(name, _)| *name == program) else { return true };
    let may = |option: &&str| match option.strip_prefix("--") {
        Some(_) => argument.starts_with(option),
        // The rest of a short option is its value, if it begins with no letter.
        None => {
            let value = argument.strip_prefix(option);
            value.is_some_and(|value| !value.starts_with(|letter: char| letter.is_ascii_alphabetic()))
        }
    };
    !argument.starts_with('-') || argument == "-" || options.iter().any(may)
}

/// The programs of a shell command with their arguments; `None` if the shell would do more than start them.
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

/// Adds the rest of a quoted text to a word; `None` if the shell would put something else there.
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
            "sed -n -e s/a/b/p",
            "sort -k2 -u -t,",
            "jq -S .",
            "openssl enc -aes-256-cbc -d -pass file:/home/ada/key",
            "gpg --batch -r ada@example.com -e",
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
            "sed -nf clean.sed",
            "sed --fil=clean.sed",
            "/usr/bin/sed -f clean.sed",
            "sed -n --file clean.sed",
            "gawk -i here.awk 1",
            "awk -E x",
            "sort --compress-program=./x",
            "gpg --options ./gpg.conf -d",
            "openssl enc -config x.cnf",
            "jq -rf x.jq",
            "/usr/bin/busybox sh x",
            "nohup ./x",
            "/usr/bin/setsid ./x",
            "A=1 cat",
            "~/clean",
            "git clean-it",
            "cat 'open",
        ] {
            assert!(!loads_nothing_from_here(other, root), "{other}");
        }
    }
}
