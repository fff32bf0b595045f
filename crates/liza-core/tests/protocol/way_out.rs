//! The way out of every rest: a person who does what the screens say, and agents that do good work, reach the goal.

use liza_core::model::{Actor, AgentId, GoalStatus, Role, TaskId};
use liza_core::protocol::{
    AbandonTask, Answer, Command, EditTask, Finalize, Resume, SubmitVerdict, TaskEdit, Verdict, WriteNote,
};
use liza_status::words::next_steps;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::quiet_team::{GOOD, Moods, settle, shown, start, teams};
use crate::random::{run_sequence, steps};
use crate::world::World;

/// How often the person reads what is needed, and does it all.
const READINGS: usize = 30;

/// A person at the screen, with the agents of the team that runs.
struct Person<'w> {
    world: &'w mut World,
    team: Vec<AgentId>,
}

impl Person<'_> {
    /// Does what a command says, with some text where it has dots.
    fn obey(&mut self, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        let task = |place: usize| -> TaskId { words[place].parse().unwrap() };
        let text = || "Yes".to_owned();
        let command = match words[1..] {
            ["answer", ..] => Command::from(Answer { task: task(2), text: text() }),
            ["note", _, "--for", _] => Command::from(WriteNote { message: text(), to: Some(task(4)) }),
            ["note", _] => Command::from(WriteNote { message: text(), to: None }),
            ["finalize", _] => Command::from(Finalize { tasks: vec![task(2)], unchanged_since: None }),
            ["abandon-task", ..] => Command::from(AbandonTask { task: task(2), reason: text() }),
            ["edit-task", _, "--depends", _] => {
                let edit = TaskEdit { depends_on: Some(Vec::new()), ..TaskEdit::default() };
                Command::from(EditTask { task: task(2), edit })
            }
            ["edit-task", _, "--done", ..] => {
                let edit = TaskEdit { done_when: Some(text()), scope: Some(text()), ..TaskEdit::default() };
                Command::from(EditTask { task: task(2), edit })
            }
            ["submit-verdict", _, "APPROVED"] => {
                let (verdict, facts) = (Verdict::Approved(Some(text())), Some(self.world.facts(&task(2))));
                Command::from(SubmitVerdict { task: task(2), verdict, facts, commit: None, moved: None })
            }
            ["resume"] => Command::from(Resume { decision: None, note: None }),
            ["agent", role] => return self.start(role),
            ["run"] => {
                return ["coder", "coder", "code-reviewer", "planner"]
                    .iter()
                    .for_each(|role| self.start(role));
            }
            _ => panic!("{command}: what does it do?"),
        };
        // What was done for one entry may have settled another one.
        let _ = self.world.run(Actor::Human, command);
    }

    fn start(&mut self, role: &str) {
        let role = [Role::Planner, Role::Coder, Role::CodeReviewer]
            .into_iter()
            .find(|known| known.id_prefix() == role)
            .unwrap();
        let number = self.team.iter().filter(|agent| agent.role() == role).count() + 1;
        let agent = AgentId::new(role, u32::try_from(number).unwrap());
        start(self.world, agent);
        self.team.push(agent);
    }

    /// Reads what is needed and does it, until all tasks have ended; whether that came about.
    fn follows_the_screen(&mut self) -> bool {
        for _ in 0..READINGS {
            let view = shown(self.world);
            if view.goal.as_ref().is_none_or(|goal| goal.status != GoalStatus::InProgress) {
                return true;
            }
            let needed = view.needs_you.iter().map(|need| need.command.to_string());
            let mut commands: Vec<String> =
                needed.chain(next_steps(&view).into_iter().map(|(_, command)| command.to_owned())).collect();
            commands.sort();
            commands.dedup();
            for command in commands.iter().filter(|command| !command.starts_with("liza add")) {
                self.obey(command);
            }
            settle(self.world, &self.team, &mut Moods::new(&[GOOD]));
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Covers: UI-03, TS-04
    #[test]
    fn who_does_what_the_screen_says_gets_out_of_every_rest(steps in steps(), team in teams()) {
        let mut world = run_sequence(&steps);
        team.rest(&mut world);
        let mut person = Person { world: &mut world, team: team.agents() };
        let reached = person.follows_the_screen();
        let view = shown(&world);
        prop_assert!(reached, "{:#?}\n{:#?}", view.needs_you, next_steps(&view));
    }
}
