//! `liza completions`: the completion script for a shell.

use clap_complete::Shell;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Completes tasks after the verbs that people type. A name is never expanded by the shell.
const BASH_TASKS: &str = r#"
_liza_tasks() {
    local task word=${COMP_WORDS[COMP_CWORD]}
    if [[ $COMP_CWORD -ne 2 || $word == -* || " answer diff show tail " != *" ${COMP_WORDS[1]} "* ]]; then
        _liza "$@"
        return
    fi
    COMPREPLY=()
    while read -r task; do
        [[ $task == "$word"* ]] && COMPREPLY+=("$task")
    done < <("$1" get '.tasks[].id' 2>/dev/null)
}

complete -F _liza_tasks -o bashdefault -o default liza
"#;

/// Print the completion script for your shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza completions bash > ~/.local/share/bash-completion/completions/liza
  liza completions zsh > \"${fpath[1]}/_liza\"
  liza completions fish > ~/.config/fish/completions/liza.fish")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let mut cli = (context.services.command_line)();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "liza", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash {
        script.push_str(BASH_TASKS);
    }
    Ok(Reply::new(script.clone(), json!({"shell": args.shell.to_string(), "script": script})))
}
