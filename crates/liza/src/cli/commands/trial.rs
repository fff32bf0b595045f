//! `liza trial`: does supervision pay? The real rules with dice for agents, beside a prediction. Needs no project and no key.

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Measure what supervision adds, with dice for agents.
///
/// Agents are dice with known rates, so the result of each way of working is arithmetic. The rules of Liza run beside it on 40 small tasks with planted defects and scripted
/// misbehaviour; a difference between measured and predicted is a fault of Liza, and then this exits 4. It says nothing about models, needs no
/// project and costs nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza trial
  liza trial --pairs 3000
  liza trial --seed 8 --json")]
pub(crate) struct Args {
    /// The pairs in each cell: the same task, fault and dice in each way of working.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pairs: u32,
    /// The seed of all dice.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

#[cfg(feature = "trial")]
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    use liza_trial::arms::Rates;
    use liza_trial::table::tables;
    use liza_trial::trial::{Plan, run};

    use crate::cli::ui::console::Stream;
    use crate::cli::ui::exit_code::Exit;
    use crate::cli::ui::output::to_json;

    let plan = Plan { pairs: args.pairs as usize, seed: args.seed, rates: Rates::grid() };
    let console = &context.screen.console;
    let shows = console.is_terminal(Stream::Error) && !context.screen.quiet;
    let progress = |done: usize, all: usize| {
        if shows {
            let end = if done == all { "\n" } else { "" };
            let _ = console.write(Stream::Error, &format!("\r{done} of {all} cells{end}"));
        }
    };
    let trial = run(&plan, &progress);
    let is_wrong = !trial.faults().is_empty() || trial.protocol_faults().1 > 0;
    let exit = if is_wrong { Exit::Inconsistent } else { Exit::Success };
    Ok(Reply::new(tables(&trial), to_json(&trial)).exit(exit))
}

#[cfg(not(feature = "trial"))]
pub(crate) fn run(_: Args, _: &Context) -> Result<Reply, CommandError> {
    Err(CommandError::missing_feature("the trial"))
}
