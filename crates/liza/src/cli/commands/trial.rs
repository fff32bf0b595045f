//! `liza trial`: does supervision pay? The real rules with dice for agents, beside a prediction; or a real program on fresh tasks. Needs no project.

use crate::cli::ui::program_name::ProgramName;

/// Measure what supervision adds, with dice for agents.
///
/// Agents are dice with known rates, so the result of each way of working is arithmetic. The rules of Liza run beside it on 40 small tasks with planted defects and scripted
/// misbehaviour; a difference between measured and predicted is a fault of Liza, and then this exits 4. It says nothing about models, needs no
/// project and costs nothing.
///
/// With --cli and --budget a real program works instead: on small tasks made from a new seed, a third of them impossible and a third with
/// something wrong beside the scope; once as a team of Liza, once alone with the tokens that the team has used. The plan, the seed and the
/// prediction are committed before the first session. The makers of Liza have never run this with a real model.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza trial
  liza trial --pairs 3000
  liza trial --seed 8 --json
  liza trial --cli claude --budget 50 --pairs 30")]
pub(crate) struct Args {
    /// The pairs in each cell: the same task, fault and dice in each way of working. With --cli, the most tasks.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pairs: u32,
    /// The seed of all dice; default 7, with --cli a new one.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Let this agent program work, instead of dice. It costs tokens.
    #[arg(long = "cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true, requires = "budget")]
    provider: Option<String>,
    /// The millions of tokens after which no new task begins.
    #[arg(long, value_name = "N", requires = "provider")]
    budget: Option<f64>,
    /// Do not ask before the sessions.
    #[arg(long, short)]
    yes: bool,
}

#[cfg(feature = "trial")]
pub(crate) use with_trial::run;
#[cfg(not(feature = "trial"))]
pub(crate) use without_trial::run;

#[cfg(not(feature = "trial"))]
mod without_trial {
    use super::Args;
    use crate::cli::context::Context;
    use crate::cli::ui::error::{CommandError, INSTALL};
    use crate::cli::ui::output::Reply;

    pub(crate) fn run(_: Args, _: &Context) -> Result<Reply, CommandError> {
        let hint = format!("in the clone of Liza, the program that has it: {INSTALL} --features trial");
        Err(CommandError::missing_feature("the trial").hint(hint))
    }
}

#[cfg(feature = "trial")]
mod with_trial {
    use liza_agents::providers::Provider;
    use liza_core::model::{Config, Role};
    use liza_team::project::now;
    use liza_team::run::demo::temporary_folder;
    use liza_trial::arms::Rates;
    use liza_trial::fresh::fresh_tasks;
    use liza_trial::model_trial::{ModelPlan, NEVER_RUN, PairResult, model_table};
    use liza_trial::table::tables;
    use liza_trial::trial::{Plan, run as run_trial};
    use serde_json::json;

    use super::Args;
    use crate::cli::confirm::{at_terminal, says_yes};
    use crate::cli::context::Context;
    use crate::cli::model_trial::ModelTrial;
    use crate::cli::ui::console::Stream;
    use crate::cli::ui::error::CommandError;
    use crate::cli::ui::exit_code::Exit;
    use crate::cli::ui::output::{Reply, to_json};

    /// The program that plays from a playbook; it may report no tokens.
    const SCRIPTED: &str = "rehearsal";

    pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
        if let (Some(program), Some(budget)) = (&args.provider, args.budget) {
            context.human_only("trial")?;
            return with_program(&args, context, program, budget);
        }
        let plan = Plan { pairs: args.pairs as usize, seed: args.seed.unwrap_or(7), rates: Rates::grid() };
        let console = &context.screen.console;
        let shows = console.is_terminal(Stream::Error) && !context.screen.quiet;
        let progress = |done: usize, all: usize| {
            if shows {
                let end = if done == all { "\n" } else { "" };
                let _ = console.write(Stream::Error, &format!("\r{done} of {all} cells{end}"));
            }
        };
        let trial = run_trial(&plan, &progress);
        let is_wrong = !trial.faults().is_empty() || trial.protocol_faults().1 > 0;
        let exit = if is_wrong { Exit::Inconsistent } else { Exit::Success };
        Ok(Reply::new(tables(&trial), to_json(&trial)).exit(exit))
    }

    fn with_program(
        args: &Args,
        context: &Context,
        program: &str,
        budget: f64,
    ) -> Result<Reply, CommandError> {
        if !(budget.is_finite() && budget > 0.0) {
            let message = format!("--budget {budget}: it must be a number of millions of tokens, above 0");
            return Err(CommandError::refused("bad_budget", message).hint("for example: --budget 50"));
        }
        let config = Config::default();
        Provider::choose(&config, Role::Coder, Some(program))?.installed_program()?;
        let limit = (budget * 1e6) as u64;
        let seed = args.seed.unwrap_or_else(|| u64::try_from(now().unix()).unwrap_or(7));
        let tasks = fresh_tasks(seed, args.pairs as usize);
        confirm(args, context, program, limit)?;
        let folder = temporary_folder("liza-trial")?;
        let trial = ModelTrial { context, folder, program };
        let commit = trial.begin(&ModelPlan::new(program, limit, seed, &tasks))?;
        let place = trial.folder.display().to_string();
        context.screen.note(&format!("liza: the plan is committed as {commit} in {place}"));
        let mut pairs: Vec<PairResult> = Vec::new();
        let used = |pairs: &[PairResult]| {
            pairs.iter().flat_map(|pair| &pair.arms).map(|arm| arm.tokens).sum::<u64>()
        };
        for task in &tasks {
            if used(&pairs) >= limit {
                break;
            }
            pairs.push(trial.pair(task)?);
            trial.keep(&pairs)?;
            let (done, tokens) = (pairs.len(), used(&pairs));
            context
                .screen
                .note(&format!("liza: {done} of {} tasks, {tokens} of {limit} tokens", tasks.len()));
            if tokens == 0 && program != SCRIPTED {
                let message = format!(
                    "{program} reports no tokens, so the budget cannot hold; stopped after the first task"
                );
                return Err(CommandError::refused("no_usage", message).hint(format!("what it did: {place}")));
            }
        }
        let text = format!("{}\n\nPlan, results and projects: {place}", model_table(&pairs));
        let ended = if pairs.len() < tasks.len() { "budget" } else { "tasks" };
        let result = json!({
            "note": NEVER_RUN, "folder": place, "plan_commit": commit, "seed": seed, "tokens": used(&pairs), "ended_by": ended,
            "pairs": to_json(&pairs),
        });
        Ok(Reply::new(text, result))
    }

    fn confirm(args: &Args, context: &Context, program: &str, limit: u64) -> Result<(), CommandError> {
        let cost = format!(
            "{NEVER_RUN}\nUp to {} tasks by {program}, each once by a team and once by one agent; no new task begins after {limit} tokens.",
            args.pairs
        );
        let refused =
            |hint: &str| Err(CommandError::refused("not_confirmed", "no session was started").hint(hint));
        if args.yes {
            context.screen.note(&cost);
            return Ok(());
        }
        if !at_terminal(context) {
            context.screen.note(&cost);
            return refused("to start without a question: --yes");
        }
        match says_yes(context, &format!("{cost}\nStart?")) {
            true => Ok(()),
            false => refused("without a model, and without cost: liza trial"),
        }
    }
}
