//! `liza completions`: the completion script for a shell.

use clap_complete::Shell;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Completes tasks after the verbs that people type, and agents after `tail`. A name is never expanded by the shell.
const BASH_TASKS: &str = r#"
_liza_names() {
    "$1" get '.tasks[].id' 2>/dev/null
    if [[ ${COMP_WORDS[1]} == tail ]]; then
        "$1" get .agents 2>/dev/null | sed -n 's/^\([a-z][a-z-]*-[0-9][0-9]*\):.*/\1/p'
    fi
}

_liza_tasks() {
    local task word=${COMP_WORDS[COMP_CWORD]} is_task=
    [[ $COMP_CWORD -eq 2 && " abandon-task answer diff show tail " == *" ${COMP_WORDS[1]} "* ]] && is_task=yes
    [[ ${COMP_WORDS[COMP_CWORD - 1]} == --for ]] && is_task=yes
    if [[ -z $is_task || $word == -* ]]; then
        _liza "$@"
        return
    fi
    COMPREPLY=()
    while read -r task; do
        [[ $task == "$word"* ]] && COMPREPLY+=("$task")
    done < <(_liza_names "$1")
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
