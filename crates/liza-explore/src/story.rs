//! One task whose sessions end as a seed decides, in a team of one coder and one code reviewer to which nothing else happens.
//!
//! The same sessions can be played with real processes: then the same events have to follow. That is how the world of this crate is
//! compared with the program.

use liza_core::model::{AgentId, Role, StopFiles, TaskId, TaskRecord};
use liza_core::supervise::{Step, Work};

use crate::alphabet::{Action, step};
use crate::properties::decided;
use crate::simulate::Dice;
use crate::world::{Size, World};

/// The most steps of supervisors: the limits end every story long before.
const STEPS: usize = 100;

/// What sessions did, and the task at the end.
#[derive(Debug, Clone)]
pub struct Story {
    pub seed: u64,
    /// The ends of the sessions of each role, in their order.
    pub coder: Vec<&'static str>,
    pub reviewer: Vec<&'static str>,
    pub task: TaskRecord,
}

/// The ends of a coder's session, and of a code reviewer's, with their chances in percent.
const OF_CODER: [(u64, &str); 4] = [(60, "submit"), (75, "block"), (88, "idle"), (100, "crash")];
const OF_REVIEWER: [(u64, &str); 4] = [(45, "approve"), (75, "reject"), (88, "idle"), (100, "crash")];

struct Teller {
    world: World,
    dice: Dice,
    coder: Vec<&'static str>,
    reviewer: Vec<&'static str>,
}

/// Plays the sessions of a seed until no supervisor has anything to do.
pub fn story(seed: u64) -> Story {
    let world = World::new(Size::new(1, 1, 1));
    let mut teller = Teller { world, dice: Dice(seed), coder: Vec::new(), reviewer: Vec::new() };
    for _ in 0..STEPS {
        let reviewer = AgentId::new(Role::CodeReviewer, 1);
        if !teller.goes_on(reviewer) && !teller.goes_on(AgentId::new(Role::Coder, 1)) {
            break;
        }
    }
    let Teller { world, coder, reviewer, .. } = teller;
    let task = world.size.task_ids().next().unwrap();
    Story { seed, coder, reviewer, task: world.state.board.body(&task).unwrap().record().clone() }
}

impl Teller {
    /// One piece of work of an agent; false if it has none.
    fn goes_on(&mut self, agent: AgentId) -> bool {
        let Step::Work(work) = decided(&self.world, agent, StopFiles::default()) else { return false };
        work.into_iter().any(|work| match work {
            Work::Code(task) => {
                self.take(&Action::Reserve(agent, task.clone()));
                self.take(&Action::Claim(agent, task.clone())) && self.session(agent, task)
            }
            Work::Review(task) => {
                self.take(&Action::ClaimReview(agent, task.clone())) && self.session(agent, task)
            }
            Work::Merge(task) => self.take(&Action::Merge(agent, task)),
            Work::Plan(_) => false,
        })
    }

    /// A session, unless the claim was refused and the board written: a used-up budget blocks the task.
    fn session(&mut self, agent: AgentId, task: TaskId) -> bool {
        if self.world.state.board.held_by(agent) != Some(&task) {
            return true;
        }
        if agent.role() == Role::Coder { self.code(agent, task) } else { self.review(agent, task) }
    }

    fn take(&mut self, action: &Action) -> bool {
        match step(&self.world, action) {
            Ok(next) => {
                self.world = next;
                true
            }
            Err(_) => false,
        }
    }

    fn word(&mut self, of: [(u64, &'static str); 4]) -> &'static str {
        let roll = self.dice.percent();
        of.into_iter().find(|(below, _)| roll < *below).map_or("crash", |(_, word)| word)
    }

    fn code(&mut self, agent: AgentId, task: TaskId) -> bool {
        let word = self.word(OF_CODER);
        self.coder.push(word);
        self.take(&match word {
            "submit" => Action::Submit(agent, task),
            "block" => Action::Block(agent, task),
            "idle" => Action::Idle(agent, task),
            _ => Action::Crash(agent, task),
        })
    }

    fn review(&mut self, agent: AgentId, task: TaskId) -> bool {
        let word = self.word(OF_REVIEWER);
        self.reviewer.push(word);
        self.take(&match word {
            "approve" => Action::Approve(agent, task),
            "reject" => Action::Reject(agent, task),
            "idle" => Action::Idle(agent, task),
            _ => Action::Crash(agent, task),
        })
    }
}
