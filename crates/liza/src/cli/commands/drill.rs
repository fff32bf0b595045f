//! `liza drill`: how good is a reviewer in this project? The reviews run in copies; the project gets `.liza/drills.json` only.

use std::cell::RefCell;

use liza_agents::providers::Provider;
use liza_core::evidence::{Defect, DrillRecord, Estimate, reviewer_rates};
use liza_core::model::{Config, Role, State};
use liza_core::text::count;
use liza_drill::{
    Change, Cost, Drill, DrillEnd, DrillError, NoPlant, Plant, Plants, Stage, add_record, drill, find_plants,
    merged_changes, table,
};
use liza_store::LogRecord;
use liza_team::observe::drills::read_records;
use liza_team::observe::last_run::last_run;
use liza_team::project::{Project, now};
use liza_team::supervisor::{MessageLevel, Post, SupervisorOptions};
use serde_json::json;

use crate::cli::agent_programs::default_client;
use crate::cli::confirm::{at_terminal, says_yes};
use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::{Reply, to_json};
use crate::cli::ui::program_name::ProgramName;

use super::agent::{check_confinement, missing_login_notes};

/// The planted defects that give a rate to 5 points: `Estimate::points` of it.
const FOR_FIVE_POINTS: usize = 385;

/// Measure how many planted defects a reviewer catches
///
/// Reviews merged changes again: half as they were, half with a small defect that passes every command which judges work here, and
/// fails a test that was taken out of the copy. Each review is a session in a copy of the project, with the blackboard as it was when
/// the change was submitted. Nothing can be merged there, and the blackboard of the project does not change; the result is in
/// .liza/drills.json and in liza retro. The cost is shown first, and asked for.
///
/// 20 reviews show a rate to about 27 points, 400 to 7; 5 points need 385 defects, so 770 reviews.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza drill
  liza drill --reviews 100 --cli codex
  liza drill --reviews 2 --cli rehearsal --yes --json")]
pub(crate) struct Args {
    /// The number of reviews; half of them have a defect.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    reviews: u32,
    /// The agent program; default as for liza run.
    #[arg(long = "cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true)]
    provider: Option<String>,
    /// Do not ask before the sessions.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("drill")?;
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let post = reviewer(&args, context, &project, &state)?;
    let changes = merged_changes(&state, project.repo()?)?;
    if changes.is_empty() {
        let message =
            "no change with a review of its own is merged here, so there is nothing to review again";
        return Err(CommandError::refused("nothing_to_drill", message).hint(format!(
            "let a team merge tasks first: {}; archived tasks do not count",
            last_run(&project).run
        )));
    }
    let wanted = args.reviews as usize / 2;
    let name = post.provider.name().to_owned();
    let cost = Cost::of(&state, &name);
    confirm(&args, context, &sentence(&args, &post, state.board.config()?, &cost))?;
    let workshop = Stage::workshop(&project, &state)?;
    let plants = plant(context, &workshop, &state, &changes, wanted)?;
    let log = project.store().log_reader().read_new()?;
    let drills =
        Drills { context, project: &project, state: &state, log: &log, workshop: &workshop, post: &post };
    let done = drills.run(&plants.found)?;
    result(&project, &plants, wanted, &done)
}

/// The reviewer's post, once its program and its confinement are there.
fn reviewer(args: &Args, context: &Context, project: &Project, state: &State) -> Result<Post, CommandError> {
    let config = state.board.config()?;
    let default = default_client(context);
    let provider = Provider::choose_or(config, Role::CodeReviewer, args.provider.as_deref(), default)?;
    let role = Role::CodeReviewer;
    let post = Post { role, agent: None, provider, task: None, once: true, interactive: false };
    post.provider.installed_program()?;
    post.provider.check_budget(config)?;
    for note in missing_login_notes(context, project, config, std::slice::from_ref(&post)) {
        context.screen.note(&format!("liza: {note}"));
    }
    check_confinement(context, project, config, [role])?;
    project.repo()?.identity()?;
    Ok(post)
}

/// The plan and its cost.
fn sentence(args: &Args, post: &Post, config: &Config, cost: &Cost) -> String {
    let (name, wanted) = (post.provider.name(), args.reviews as usize / 2);
    let model = config.model(Role::CodeReviewer).map(|model| format!(" ({model})")).unwrap_or_default();
    let points = Estimate::points(wanted).ceil();
    let reviews = wanted * 2;
    format!(
        "{reviews} reviews by {name}{model}, half of them with a planted defect. {}\nBefore them, the commands that judge work run \
         several times for each defect, on this machine.\n{} show a rate to {points} points; for 5 points: --reviews {}",
        cost.in_words(reviews, name),
        count(wanted, "defect"),
        2 * FOR_FIVE_POINTS
    )
}

fn confirm(args: &Args, context: &Context, sentence: &str) -> Result<(), CommandError> {
    let refused =
        |hint: &str| Err(CommandError::refused("not_confirmed", "no review was started").hint(hint));
    if args.yes {
        context.screen.note(sentence);
        return Ok(());
    }
    if !at_terminal(context) {
        context.screen.note(sentence);
        return refused("to start them without a question: --yes");
    }
    match says_yes(context, &format!("{sentence}\nStart them?")) {
        true => Ok(()),
        false => refused("fewer reviews: liza drill --reviews 4"),
    }
}

fn plant(
    context: &Context,
    workshop: &Stage,
    state: &State,
    changes: &[Change],
    wanted: usize,
) -> Result<Plants, CommandError> {
    let last = RefCell::new(String::new());
    let progress = |task: &liza_core::model::TaskId, found: usize| {
        let text = format!("liza: {found} of {wanted} defects are planted; trying {task}");
        if *last.borrow() != text {
            context.screen.note(&text);
            *last.borrow_mut() = text;
        }
    };
    let plants = find_plants(&workshop.project, state, changes, wanted, &progress)?;
    if plants.found.is_empty() {
        let message = format!("no defect can be planted: {}", reasons(&plants));
        return Err(CommandError::refused("nothing_to_drill", message).hint(
            "drills need merged changes that bring a test file, and a command that runs it: liza config validation '[\"COMMAND\"]'",
        ));
    }
    Ok(plants)
}

/// The reasons that changes have no plant, with their numbers.
fn reasons(plants: &Plants) -> String {
    let mut reasons: Vec<(NoPlant, usize)> = Vec::new();
    for (_, why) in &plants.without {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, number)) => *number += 1,
            None => reasons.push((*why, 1)),
        }
    }
    let words =
        |(why, number): &(NoPlant, usize)| format!("{} that {}", count(*number, "change"), why.words());
    reasons.iter().map(words).collect::<Vec<_>>().join("; ")
}

struct Drills<'d> {
    context: &'d Context,
    project: &'d Project,
    state: &'d State,
    log: &'d [LogRecord],
    workshop: &'d Stage,
    post: &'d Post,
}

/// The records of this run, and whether the person ended it.
#[derive(Default)]
struct Done {
    records: Vec<DrillRecord>,
    interrupted: bool,
}

impl Drills<'_> {
    fn run(&self, plants: &[Plant]) -> Result<Done, CommandError> {
        let mut done = Done::default();
        let all = plants.len() * 2;
        for plant in plants {
            // The original first for every second plant, so that neither kind is always the later one.
            let turns = if done.records.len() % 4 == 0 { [true, false] } else { [false, true] };
            for is_planted in turns {
                let end = self.review(plant, is_planted)?;
                if end.interrupted && end.rejected.is_none() {
                    done.interrupted = true;
                    return Ok(done);
                }
                let record = self.record(plant, is_planted, &end)?;
                add_record(self.project.folder(), record.clone()).map_err(|error| {
                    CommandError::refused("io", format!("cannot keep the result: {error}"))
                })?;
                done.records.push(record);
                self.note(done.records.len(), all, end);
            }
        }
        Ok(done)
    }

    fn review(&self, plant: &Plant, is_planted: bool) -> Result<DrillEnd, DrillError> {
        let shown = if is_planted { &plant.planted } else { &plant.original };
        let Self { project, state, log, workshop, .. } = *self;
        let commands = (self.context.services.session_commands)();
        let options = SupervisorOptions::alone(self.context.program.clone(), commands);
        let alerts = |message: &liza_team::supervisor::TeamMessage| {
            if message.level == MessageLevel::Alert {
                self.context.screen.note(&format!("liza: {}", message.text));
            }
        };
        drill(
            &Drill { project, state, log, workshop },
            (&plant.change, shown),
            self.post.clone(),
            options,
            &alerts,
        )
    }

    fn record(&self, plant: &Plant, is_planted: bool, end: &DrillEnd) -> Result<DrillRecord, CommandError> {
        let Plant { path, line, before, after, .. } = plant.clone();
        let name = self.post.provider.name();
        Ok(DrillRecord {
            time: now(),
            task: plant.change.task.clone(),
            defect: is_planted.then_some(Defect { path, line, before, after }),
            taken_out: plant.taken_out.clone(),
            rejected: end.rejected,
            program: end.program.clone().unwrap_or_else(|| name.to_owned()),
            model: self.state.board.config()?.model(Role::CodeReviewer).map(str::to_owned),
        })
    }

    /// What is printed after a review does not say which kind it was: the person may be a reviewer too.
    fn note(&self, number: usize, all: usize, end: DrillEnd) {
        let word = match end.rejected {
            Some(true) => "rejected".to_owned(),
            Some(false) => "approved".to_owned(),
            None => format!("no verdict{}", end.why.map(|why| format!(": {why}")).unwrap_or_default()),
        };
        self.context.screen.note(&format!("liza: review {number} of {all}: {word}"));
    }
}

fn result(project: &Project, plants: &Plants, wanted: usize, done: &Done) -> Result<Reply, CommandError> {
    let all = read_records(project.folder())
        .map_err(|error| CommandError::refused("io", format!("cannot read the results: {error}")))?;
    let (of_run, of_all) = (reviewer_rates(&done.records), reviewer_rates(&all));
    let mut lines = Vec::new();
    if plants.found.len() < wanted {
        let found = count(plants.found.len(), "defect");
        lines.push(format!("Only {found} of {wanted} could be planted: {}", reasons(plants)));
    }
    if done.interrupted {
        lines.push("Interrupted; the reviews that had ended are kept.".to_owned());
    }
    lines.extend(table(&of_run));
    if all.len() > done.records.len() {
        lines.push(format!(
            "With the {} of earlier drills: liza retro",
            count(all.len() - done.records.len(), "review")
        ));
    }
    let json = json!({
        "reviews": done.records.len(),
        "rates": of_run,
        "rates_of_all_drills": of_all,
        "wanted": wanted * 2,
        "interrupted": done.interrupted,
        "records": to_json(&done.records),
    });
    let reply = Reply::new(lines.join("\n"), json);
    let has_verdict = done.records.iter().any(|record| record.rejected.is_some());
    Ok(if has_verdict { reply } else { reply.exit(Exit::Refused) })
}

impl From<DrillError> for CommandError {
    fn from(error: DrillError) -> Self {
        let message = format!("cannot drill: {error}");
        match error {
            DrillError::Copy(_) | DrillError::Io { .. } => Self::refused("io", message),
            DrillError::Engine(error) => error.into(),
            DrillError::Supervisor(error) => error.into(),
        }
    }
}
