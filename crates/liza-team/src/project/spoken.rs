//! Decides whether a code reviewer's agent program spoke a command: the processes from the program to `liza`
//! are the program's own, then shells of the system, then `liza`. Judges a line of processes as it is now.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use liza_sandbox::sys::peer::{Image, LineProcess, program_file};

/// Programs that become the command in their arguments, and run nothing else.
const PREFIXES: [&str; 4] = ["env", "nice", "nohup", "setsid"];

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish"];

/// The folders of installed shells: no session can write there.
const SYSTEM: [&str; 6] = ["/bin", "/usr", "/opt", "/nix/store", "/gnu/store", "/home/linuxbrew"];

/// Files with many programs, shells and those above among them.
const MANY: [&str; 2] = ["busybox", "coreutils"];

/// Programs that run others' scripts. Two processes of one are of one program only if their scripts are equal.
const INTERPRETERS: [&str; 6] = ["node", "bun", "deno", "python", "ruby", "perl"];

pub(super) fn is_spoken(line: &[LineProcess], helper: u32, client: Option<u32>) -> bool {
    // The helper is a process of the same program.
    let Some(liza) = program_file(helper) else { return false };
    let Some((below, program)) = below(line, client) else { return false };
    let script = script(program).and_then(|script| Path::new(script).canonicalize().ok());
    is_line_of(below, &Program { process: program, script, liza })
}

/// The processes below the agent program, the nearest to `liza` first; the program itself.
fn below(line: &[LineProcess], client: Option<u32>) -> Option<(&[LineProcess], &LineProcess)> {
    let at = line.iter().position(|process| Some(process.pid) == client)?;
    Some((line.get(..at)?, line.get(at)?))
}

struct Program<'l> {
    process: &'l LineProcess,
    /// The real file of the script that its interpreter runs.
    script: Option<PathBuf>,
    liza: PathBuf,
}

fn is_line_of(below: &[LineProcess], program: &Program<'_>) -> bool {
    let Some((speaker, between)) = below.split_first() else {
        // The agent program itself.
        return true;
    };
    let mut from_program = between.iter().rev().peekable();
    // One more process of its own: a launcher starts the real program, or one starts itself again.
    let _ = from_program.next_if(|process| program.is_own(process));
    let is_liza = |process: &LineProcess| process.image.file.as_ref() == Some(&program.liza);
    let above = between.iter().chain([program.process]);
    is_liza(speaker)
        && from_program.all(|process| is_shell(process) || is_liza(process))
        && below.iter().zip(above).all(|(process, above)| program.has_become(process, above))
}

impl Program<'_> {
    /// What a process says of itself, its name and its arguments, counts only for the first process of a session: the program
    /// has run nothing of the work then.
    fn is_own(&self, process: &LineProcess) -> bool {
        match &process.image.file {
            Some(file) if Some(file) == self.process.image.file.as_ref() => {
                let is_equal = || script(process) == script(self.process);
                !is_interpreter(file) || process.is_first && (is_equal() || self.is_beside(process))
            }
            Some(file) => self.is_launched(file) || process.is_first && self.is_server(process, file),
            // It hides its file; only its name is known.
            None => {
                process.is_first && process.command.first().is_some_and(|name| self.has_name(Path::new(name)))
            }
        }
    }

    /// True if a process was nothing before but what its parent was when it made it, or a shell: a file of the commit can
    /// become `liza`, or a shell that does, and would not be in the line any more.
    fn has_become(&self, process: &LineProcess, above: &LineProcess) -> bool {
        let is_harmless = |file: &Path| {
            let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let is_known = SHELLS.contains(&name) || PREFIXES.contains(&name) || MANY.contains(&name);
            file == self.liza || is_known && is_of_system(file)
        };
        let was_above = |image: &Image| *image == above.image || above.before.contains(image);
        // Codex starts itself to prepare a shell. An interpreter would run a script of the commit.
        let is_program = |file: &Path| above.image.file.as_deref() == Some(file) && !is_interpreter(file);
        process.before.iter().enumerate().all(|(at, image)| {
            *image == process.image && image.start.is_some()
                || at == 0 && was_above(image)
                || image.file.as_deref().is_some_and(|file| is_harmless(file) || is_program(file))
        })
    }

    /// True for an interpreter of another script in the folder of the program's own, of an installed package.
    fn is_beside(&self, process: &LineProcess) -> bool {
        let folder = self.script.as_deref().and_then(Path::parent).filter(|folder| {
            let is_modules = |part: &OsStr| part == OsStr::new("node_modules");
            folder.iter().any(is_modules)
        });
        folder.is_some() && script(process).and_then(|script| Path::new(script).parent()) == folder
    }

    /// True for the real program that a script of the same installation starts.
    fn is_launched(&self, file: &Path) -> bool {
        let Some(script) = &self.script else { return false };
        let modules = |path: &&Path| path.file_name() == Some(OsStr::new("node_modules"));
        let installation = script.ancestors().filter(modules).last();
        installation.is_some_and(|folder| file.starts_with(folder)) && self.has_name(file)
    }

    /// True for a Python script that was installed with a native program, of the same package: vibe starts its server so,
    /// which then shows nothing but the script's name.
    fn is_server(&self, process: &LineProcess, file: &Path) -> bool {
        let Some((environment, package)) = self.process.image.file.as_deref().and_then(python_package) else {
            return false;
        };
        let python = environment.join("bin/python").canonicalize();
        let is_its_python = python.is_ok_and(|python| python == file);
        let is_a_python = is_interpreter(file) && is_of_system(file);
        let name = script(process).or_else(|| Some(process.command.first()?)).map(Path::new);
        let is_of_package = |name: &OsStr| name.as_encoded_bytes().starts_with(package.as_encoded_bytes());
        let name = name.and_then(Path::file_name).filter(|name| is_of_package(name));
        (is_its_python || is_a_python)
            && name.is_some_and(|name| environment.join("bin").join(name).is_file())
    }

    /// True if a file has the name of the program's script.
    fn has_name(&self, file: &Path) -> bool {
        self.script.as_deref().is_some_and(|script| script.file_stem() == file.file_stem())
    }
}

/// The Python environment that a file of a package is in, and the package.
fn python_package(file: &Path) -> Option<(&Path, &OsStr)> {
    let is_modules = |path: &&Path| path.ends_with("site-packages") || path.ends_with("dist-packages");
    let modules = file.ancestors().find(is_modules)?;
    let package = file.strip_prefix(modules).ok()?.iter().next()?;
    Some((modules.ancestors().nth(3)?, package))
}

/// The script of an interpreter: its first argument that is no option. A program that shows another title leaves blanks.
fn script(process: &LineProcess) -> Option<&OsStr> {
    let is_option = |word: &&OsStr| word.is_empty() || word.as_encoded_bytes().starts_with(b"-");
    process.command.iter().skip(1).map(AsRef::as_ref).find(|word| !is_option(word))
}

fn is_interpreter(file: &Path) -> bool {
    // Some have their version behind the name.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

fn is_shell(process: &LineProcess) -> bool {
    let Some(file) = &process.image.file else { return false };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let called = || process.command.first().map(|word| name(Path::new(word))).unwrap_or_default();
    let name = match name(file).as_str() {
        // One file with many programs, each called by its name; a login shell has a dash before it.
        "busybox" => called().trim_start_matches('-').to_owned(),
        own => own.to_owned(),
    };
    SHELLS.contains(&name.as_str()) && is_of_system(file)
}

fn is_of_system(file: &Path) -> bool {
    SYSTEM.iter().any(|folder| file.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(file: Option<&str>, start: u64) -> Image {
        Image { file: file.map(Into::into), start: Some(start) }
    }

    /// A line from `liza` up to the agent program, each with its file and its arguments.
    fn line(processes: &[(&str, &str)]) -> Vec<LineProcess> {
        let process = |(pid, (file, words)): (usize, &(&str, &str))| {
            let command = [*file].into_iter().chain(words.split_whitespace()).map(Into::into).collect();
            let image = image((!file.starts_with("hidden")).then_some(file), 1 + pid as u64);
            let pid = u32::try_from(pid).unwrap();
            LineProcess { pid, command, image, before: Vec::new(), is_first: true }
        };
        processes.iter().enumerate().map(process).collect()
    }

    fn is_heard(between: &[(&str, &str)], program: (&str, &str)) -> bool {
        let processes = [&[("/x/liza", "submit-verdict")], between, &[program]].concat();
        let line = line(&processes);
        let (below, process) = below(&line, u32::try_from(processes.len() - 1).ok()).unwrap();
        let script = script(process).map(PathBuf::from);
        is_line_of(below, &Program { process, script, liza: "/x/liza".into() })
    }

    const CLAUDE: (&str, &str) = ("/usr/bin/node", "/usr/lib/node_modules/claude/cli.js -p");
    const CODEX: (&str, &str) = ("/usr/bin/node", "/n/node_modules/@openai/codex/bin/codex.js exec");
    const NATIVE: (&str, &str) = ("/n/node_modules/@openai/codex-linux-x64/vendor/bin/codex", "exec");
    const GOOSE: (&str, &str) = ("/home/a/bin/goose", "run");
    const SH: (&str, &str) = ("/usr/bin/dash", "-c x");
    const BASH: (&str, &str) = ("/usr/bin/bash", "-c x");

    /// Covers: AX-34
    #[test]
    fn a_launcher_may_start_another_script_of_its_package() {
        let (node, shell) = ("/usr/bin/node", ("/bin/sh", "-c x"));
        let launcher = (node, "/m/node_modules/q/cli-entry.js -o json");
        assert!(is_heard(&[shell, (node, "--expose-gc /m/node_modules/q/cli.js -o json")], launcher));
        assert!(!is_heard(&[shell, (node, "/m/node_modules/other/cli.js")], launcher), "another package");
        assert!(!is_heard(&[shell, (node, "/work/cli.js")], (node, "/work/cli-entry.js")), "no package");
        let twice = [shell, (node, "/m/node_modules/q/cli.js"), shell];
        assert!(!is_heard(&twice, launcher), "only directly below the program");
    }

    /// Covers: AX-34, JU-08
    #[test]
    fn a_native_program_of_a_python_package_may_start_a_script_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = |below: &str| folder.path().join(below).display().to_string();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        for name in ["python", "vibe-server", "pip"] {
            std::fs::write(folder.path().join("bin").join(name), "").unwrap();
        }
        let (python, program) =
            (place("bin/python"), place("lib/python3.12/site-packages/vibe/_bin/vibe-rs"));
        let (script, pip, other) = (place("bin/vibe-server"), place("bin/pip"), place("bin/vibe-other"));
        let is_heard = |file: &str, words: &str| is_heard(&[SH, (file, words)], (&program, "-p"));
        let titled = |file: &str, title: &str| {
            let command = [title, "", ""].map(Into::into).to_vec();
            let process = |pid, (file, words): (&str, Vec<std::ffi::OsString>)| LineProcess {
                pid,
                command: words,
                image: image(Some(file), 1),
                before: Vec::new(),
                is_first: true,
            };
            let server = process(1, (file, command));
            Program { process: &process(2, (&program, Vec::new())), script: None, liza: "/x/liza".into() }
                .is_own(&server)
        };
        assert!(is_heard(&python, &script) && is_heard("/usr/bin/python3.12", &script));
        assert!(titled(&python, "vibe-server"), "it hides its script");
        for (file, words) in
            [(&*python, &*pip), (&python, &other), ("/work/python", &script), (&python, "-m x")]
        {
            assert!(!is_heard(file, words), "{file} {words}");
        }
        assert!(!titled(&python, "pip") && !titled("/work/python", "vibe-server"));
        let goose = [SH, (&*python, &*script)];
        assert!(!super::tests::is_heard(&goose, GOOSE), "no package");
    }

    /// Covers: JU-08
    #[test]
    fn a_program_speaks_itself_in_its_shells_and_through_its_launcher() {
        for (between, program) in [
            (&[][..], GOOSE),
            (&[SH], GOOSE),
            (&[SH, BASH, ("/usr/local/bin/zsh", "-lc x")], CLAUDE),
            (&[("/x/liza", "check"), BASH], CLAUDE),
            (&[BASH, NATIVE], CODEX),
            (&[BASH, ("hidden/codex", "exec")], CODEX),
            // gemini starts itself again with more memory.
            (
                &[
                    BASH,
                    ("/usr/bin/node", "--max-old-space-size=8192 /usr/lib/node_modules/claude/cli.js -p"),
                ],
                CLAUDE,
            ),
            (&[BASH, GOOSE], GOOSE),
        ] {
            assert!(is_heard(between, program), "{between:?}");
        }
        let busybox = |name: &str| {
            let image = image(Some("/bin/busybox"), 1);
            is_shell(&LineProcess { command: vec![name.into()], image, ..LineProcess::default() })
        };
        assert_eq!(
            ["sh", "-ash", "/bin/sh", "xargs", "busybox"].map(busybox),
            [true, true, true, false, false]
        );
        let alone = line(&[("/x/a-script-that-becomes-liza", "submit-verdict")]);
        let is_spoken = |client| is_spoken(&alone, std::process::id(), client);
        assert_eq!([Some(0), Some(7), None].map(is_spoken), [true, false, false]);
    }

    /// Covers: JU-08
    #[test]
    fn what_was_another_program_before_does_not_speak() {
        let heard_after = |at: usize, before: &[Image]| {
            let mut line = line(&[("/x/liza", "submit-verdict"), SH, CLAUDE]);
            line[at].before = before.to_vec();
            let program = Program { process: &line[2], script: None, liza: "/x/liza".into() };
            is_line_of(&line[..2], &program)
        };
        // The shell has the start 2, and the program the start 3.
        let (node, python) = (Some("/usr/bin/node"), Some("/usr/bin/python3.12"));
        let bash = image(Some("/usr/bin/bash"), 8);
        for (at, before) in [
            (0, vec![image(Some("/usr/bin/dash"), 2)]),
            (0, vec![bash.clone(), image(Some("/x/liza"), 9)]),
            (0, vec![image(Some("/usr/bin/env"), 9)]),
            (1, vec![image(node, 3)]),
            (1, vec![image(node, 3), bash.clone()]),
            (1, vec![image(node, 3), image(Some("/usr/bin/dash"), 2)]),
        ] {
            assert!(heard_after(at, &before), "{at} {before:?}");
        }
        for (at, before) in [
            (0, vec![image(python, 9)]),
            (1, vec![image(python, 9)]),
            (0, vec![image(node, 3)]),
            (0, vec![image(Some("/tmp/env"), 9)]),
            (1, vec![image(node, 9)]),
            (1, vec![image(node, 3), image(node, 9)]),
            (1, vec![image(node, 3), bash.clone(), image(node, 9)]),
            (1, vec![bash, image(node, 3)]),
            (0, vec![image(None, 9)]),
            (1, vec![image(node, 3), Image::default()]),
        ] {
            assert!(!heard_after(at, &before), "{at} {before:?}");
        }
    }

    /// Covers: JU-08
    #[test]
    fn a_native_program_may_start_itself_to_become_a_shell() {
        let mut line = line(&[("/x/liza", "submit-verdict"), BASH, NATIVE, CODEX]);
        line[1].before =
            vec![image(Some(NATIVE.0), 3), image(Some(NATIVE.0), 9), image(Some("/bin/bash"), 8)];
        let script = script(&line[3]).map(PathBuf::from);
        let is_heard = |line: &[LineProcess]| {
            is_line_of(
                &line[..3],
                &Program { process: &line[3], script: script.clone(), liza: "/x/liza".into() },
            )
        };
        assert!(is_heard(&line));
        line[1].before[1] = image(Some(CODEX.0), 9);
        assert!(!is_heard(&line), "the interpreter above it");
    }

    /// Covers: JU-08
    #[test]
    fn only_the_first_process_is_taken_at_its_word() {
        let heard = |own: (&str, &str), is_first: bool| {
            let mut line = line(&[("/x/liza", "submit-verdict"), BASH, own, CODEX]);
            line[2].is_first = is_first;
            let script = script(&line[3]).map(PathBuf::from);
            is_line_of(&line[..3], &Program { process: &line[3], script, liza: "/x/liza".into() })
        };
        let relaunched = ("/usr/bin/node", CODEX.1);
        assert_eq!([true, false].map(|is_first| heard(relaunched, is_first)), [true, false]);
        assert_eq!([true, false].map(|is_first| heard(("hidden/codex", "exec"), is_first)), [true, false]);
        assert_eq!([true, false].map(|is_first| heard(NATIVE, is_first)), [true, true], "its file says it");
    }

    /// Covers: JU-08, IS-13
    #[test]
    fn other_programs_do_not_speak_for_a_reviewer() {
        for between in [
            &[BASH, ("/usr/bin/git", "status"), BASH][..],
            &[SH, ("/usr/bin/make", "test"), BASH],
            &[SH, ("/usr/bin/node", "/usr/lib/node_modules/npm/bin/npm-cli.js test"), BASH],
            // A shell that becomes its only command.
            &[SH, ("/usr/bin/node", "/usr/lib/node_modules/npm/bin/npm-cli.js test")],
            &[("/root/.cargo/bin/cargo", "metadata"), BASH],
            &[("/usr/bin/python3.12", "-m approve"), BASH],
            &[("/usr/bin/timeout", "9 liza"), BASH],
            &[("/home/a/.cargo/bin/rust-analyzer", "")],
            &[("/p/.worktrees/.review-t/sh", ""), BASH],
            &[("/tmp/bash", ""), BASH],
            &[("hidden/evil", ""), BASH],
            &[("/usr/lib/node_modules/turbo/bin/turbo", "")],
            &[BASH, CLAUDE, CLAUDE],
        ] {
            assert!(!is_heard(between, CLAUDE), "{between:?}");
        }
        assert!(!is_heard(&[BASH, ("/usr/bin/bun", "x"), NATIVE], CODEX));
        let own_protocol = line(&[("/usr/bin/python3", "evil.py"), BASH, CLAUDE]);
        assert!(!is_spoken(&own_protocol, std::process::id(), Some(2)), "the channel answers `liza` only");
    }
}
