//! The providers that the program knows by itself, with the command lines that were measured.

use super::usage::Stream;
use super::{Prompt, Template};

/// Their names.
pub(super) const NAMES: [&str; 7] =
    ["claude", "codex", "gemini", "mistral", "opencode", "goose", "rehearsal"];

/// What an interactive session is given to begin with; short, and the same for all.
const BEGIN: &str = "Read the file {prompt} and do what it says.";

/// The built-in provider of that name.
pub(super) fn template(name: &str) -> Option<Template> {
    Some(match name {
        "claude" => claude(),
        "codex" => codex(),
        "gemini" => gemini(),
        "mistral" | "vibe" => mistral(),
        "opencode" => opencode(),
        "goose" => goose(),
        "rehearsal" => Template {
            arguments: words(&["rehearsal"]),
            stream: Stream::Rehearsal,
            ..empty("rehearsal", None, "")
        },
        _ => return None,
    })
}

pub(super) fn empty(name: &str, program: Option<&str>, install: &str) -> Template {
    Template {
        name: name.to_owned(),
        program: program.map(str::to_owned),
        arguments: Vec::new(),
        model: Vec::new(),
        writing: Vec::new(),
        reading: Vec::new(),
        last: Vec::new(),
        interactive: Vec::new(),
        prompt: Prompt::Stdin,
        environment: Vec::new(),
        stream: Stream::None,
        install: install.to_owned(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn claude() -> Template {
    let base = ["-p", "--output-format", "stream-json", "--verbose", "--add-dir", "{git}", "{liza}"];
    Template {
        arguments: words(&base),
        model: words(&["--model", "{model}"]),
        writing: words(&[
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash,Read,Glob,Grep,Edit,Write",
        ]),
        reading: words(&[
            "--allowedTools",
            "Bash,Read,Glob,Grep",
            "--disallowedTools",
            "Edit,Write,NotebookEdit",
        ]),
        interactive: words(&[BEGIN]),
        environment: vec![("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned())],
        ..empty("claude", Some("claude"), "npm install -g @anthropic-ai/claude-code")
    }
}

fn codex() -> Template {
    // Its sandbox makes .git read-only unless told otherwise, and what git keeps for a worktree even within a .git
    // that may be written: without the index nothing can be committed. A code reviewer runs tests, which write; what
    // it changes in tracked files voids its verdict.
    let sandbox = words(&[
        "-s",
        "workspace-write",
        "--add-dir",
        "{git}",
        "--add-dir",
        "{worktree_git}",
        "--add-dir",
        "{liza}",
    ]);
    Template {
        arguments: [words(&["exec", "--json"]), sandbox.clone()].concat(),
        model: words(&["-m", "{model}"]),
        last: words(&["-"]),
        interactive: [sandbox, words(&[BEGIN])].concat(),
        ..empty("codex", Some("codex"), "npm install -g @openai/codex")
    }
}

fn gemini() -> Template {
    let base = [
        "-o",
        "stream-json",
        "--skip-trust",
        "--approval-mode",
        "yolo",
        "--include-directories",
        "{git},{liza}",
    ];
    Template {
        arguments: words(&base),
        model: words(&["-m", "{model}"]),
        // Its standard input goes before this.
        last: words(&["-p", "Do what the text above says."]),
        interactive: words(&["-i", BEGIN]),
        ..empty("gemini", Some("gemini"), "npm install -g @google/gemini-cli")
    }
}

fn mistral() -> Template {
    Template {
        arguments: words(&[
            "--output",
            "streaming",
            "--trust",
            "--auto-approve",
            "--add-dir",
            "{git}",
            "--add-dir",
            "{liza}",
            "--prompt-file",
            "{prompt}",
        ]),
        interactive: words(&[BEGIN]),
        prompt: Prompt::File,
        ..empty("mistral", Some("vibe"), "uv tool install mistral-vibe")
    }
}

fn opencode() -> Template {
    Template {
        arguments: words(&["run", "--format", "json"]),
        model: words(&["-m", "{model}"]),
        interactive: words(&["--prompt", BEGIN]),
        // Specs and the blackboard are outside the worktree: by itself it refuses to look there, and ends.
        environment: vec![("OPENCODE_PERMISSION".to_owned(), r#"{"external_directory":"allow"}"#.to_owned())],
        ..empty("opencode", Some("opencode"), "npm install -g opencode-ai")
    }
}

fn goose() -> Template {
    Template {
        arguments: words(&["run", "--no-session", "-i", "-"]),
        model: words(&["--model", "{model}"]),
        interactive: words(&["run", "--interactive", "-i", "{prompt}"]),
        environment: vec![("GOOSE_MODE".to_owned(), "auto".to_owned())],
        ..empty("goose", Some("goose"), "npm install -g @aaif/goose-binary-linux-x64")
    }
}
