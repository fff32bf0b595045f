//! Fills the posts of a team: registers an agent for each, and starts its first job.

use std::time::Instant;

use liza_core::model::Role;

use crate::project::now;

use super::background::BackgroundJob;
use super::error::SupervisorError;
use super::member::{Member, Post};
use super::message::MessageLevel;
use super::registration::{Identity, Registration, other_planner, planned_elsewhere, register};
use super::team::Team;

impl Team<'_> {
    /// If several teams start at the same moment, the blackboard decides which of them plans.
    pub(super) fn add_members(&mut self, posts: Vec<Post>) -> Result<(), SupervisorError> {
        let may_do_without = self.in_team && posts.iter().any(|post| post.role != Role::Planner);
        for post in posts {
            let result = self.add_member(post);
            let planner = result.as_ref().err().and_then(other_planner).filter(|_| may_do_without);
            let Some(planner) = planner else {
                result?;
                continue;
            };
            let state = self.project.state()?;
            let entry = state.board.agents.ready().and_then(|agents| agents.get(&planner));
            self.report_all(MessageLevel::Info, &planned_elsewhere(planner, entry));
        }
        Ok(())
    }

    fn add_member(&mut self, post: Post) -> Result<(), SupervisorError> {
        let Registration { agent, generation, liveness } = register(&self.project, post.role, post.agent)?;
        let index = self.members.len();
        let (provider, interactive) = (post.provider.clone(), post.interactive);
        let (program, channels) = (self.program.clone(), self.channels.clone());
        let identity = Identity { index, agent, generation, provider, interactive, program, channels };
        self.members.push(Member::new(identity, post, liveness, now()));
        self.debug(index, format!("registered, generation {generation}"));
        self.start_job(index, BackgroundJob::Begin { recover: index == 0 });
        self.renewals.at(Instant::now() + self.renewal_interval());
        Ok(())
    }
}
