//! The built-in providers, with command lines that were tried with the real programs.

use strum::{EnumString, VariantArray, VariantNames};

use super::template::{CommandTemplate, PromptDelivery};
use super::usage::EventFormat;

/// The first message of an interactive session: short, and the same for all.
const BEGIN: &str = "Read the file {prompt} and do what it says.";

/// A built-in provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub(super) enum BuiltIn {
    Claude,
    Codex,
    Gemini,
    #[strum(to_string = "mistral", serialize = "vibe")]
    Mistral,
    Opencode,
    Goose,
    Rehearsal,
}

impl BuiltIn {
    /// How its program is called.
    pub(super) fn template(self) -> CommandTemplate {
        match self {
            Self::Claude => claude(),
            Self::Codex => codex(),
            Self::Gemini => gemini(),
            Self::Mistral => mistral(),
            Self::Opencode => opencode(),
            Self::Goose => goose(),
            Self::Rehearsal => CommandTemplate {
                args: words("rehearsal"),
                events: EventFormat::Rehearsal,
                ..CommandTemplate::new("rehearsal", None, "")
            },
        }
    }
}

/// The words of a line, which are separated by spaces.
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// The words of a line, and a text as the last word.
fn words_and(line: &str, text: &str) -> Vec<String> {
    line.split_whitespace().chain([text]).map(str::to_owned).collect()
}

fn claude() -> CommandTemplate {
    CommandTemplate {
        args: words("-p --output-format stream-json --verbose"),
        unconfined_args: words("--add-dir {liza}"),
        model_args: words("--model {model}"),
        writing_args: words("--permission-mode acceptEdits --allowedTools Bash,Read,Glob,Grep,Edit,Write"),
        reading_args: words("--allowedTools Bash,Read,Glob,Grep --disallowedTools Edit,Write,NotebookEdit"),
        interactive_args: words_and("", BEGIN),
        environment: vec![("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned())],
        ..CommandTemplate::new("claude", Some("claude"), "npm install -g @anthropic-ai/claude-code")
    }
}

fn codex() -> CommandTemplate {
    // By default its sandbox makes .git read-only; without a writable index it cannot commit. The project's own .git stays
    // read-only. A code reviewer may write because it runs tests; a change to tracked files voids its verdict.
    // Inside another confinement its sandbox refuses every command.
    CommandTemplate {
        args: words("exec --json"),
        unconfined_args: words(
            "-s workspace-write -c sandbox_workspace_write.network_access=true --add-dir {worktree_git} --add-dir {liza}",
        ),
        confined_args: words("--dangerously-bypass-approvals-and-sandbox"),
        model_args: words("-m {model}"),
        last_args: words("-"),
        interactive_args: words_and("", BEGIN),
        ..CommandTemplate::new("codex", Some("codex"), "npm install -g @openai/codex")
    }
}

fn gemini() -> CommandTemplate {
    CommandTemplate {
        args: words("-o stream-json --skip-trust --approval-mode yolo"),
        unconfined_args: words("--include-directories {liza}"),
        model_args: words("-m {model}"),
        // It puts its standard input before this text.
        last_args: words_and("-p", "Do what the text above says."),
        interactive_args: words_and("-i", BEGIN),
        ..CommandTemplate::new("gemini", Some("gemini"), "npm install -g @google/gemini-cli")
    }
}

fn mistral() -> CommandTemplate {
    CommandTemplate {
        args: words("--output streaming --trust --auto-approve --prompt-file {prompt}"),
        unconfined_args: words("--add-dir {liza}"),
        interactive_args: words_and("", BEGIN),
        prompt: PromptDelivery::File,
        ..CommandTemplate::new("mistral", Some("vibe"), "uv tool install mistral-vibe")
    }
}

fn opencode() -> CommandTemplate {
    CommandTemplate {
        args: words("run --format json"),
        model_args: words("-m {model}"),
        interactive_args: words_and("--prompt", BEGIN),
        // Specs and the blackboard are outside the worktree: by default it refuses to read there, and exits.
        environment: vec![("OPENCODE_PERMISSION".to_owned(), r#"{"external_directory":"allow"}"#.to_owned())],
        ..CommandTemplate::new("opencode", Some("opencode"), "npm install -g opencode-ai")
    }
}

fn goose() -> CommandTemplate {
    CommandTemplate {
        args: words("run --no-session -i -"),
        model_args: words("--model {model}"),
        interactive_args: words("run --interactive -i {prompt}"),
        environment: vec![("GOOSE_MODE".to_owned(), "auto".to_owned())],
        ..CommandTemplate::new("goose", Some("goose"), "npm install -g @aaif/goose-binary-linux-x64")
    }
}
