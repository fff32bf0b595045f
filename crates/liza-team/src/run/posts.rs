//! The members of a team: from the command line, or else the config, or else two coders and one code reviewer.

use liza_agents::providers::{Provider, ProviderError, agent_count};
use liza_core::model::{AgentId, AgentRecord, Config, Role, State};

use crate::engine::LivenessLock;
use crate::project::machine::runs_here;
use crate::project::{Project, now};
use crate::supervisor::Post;

#[derive(Debug, Clone, Default)]
pub struct TeamOptions {
    pub coders: Option<u32>,
    pub reviewers: Option<u32>,
    /// For every role.
    pub provider: Option<String>,
    /// If it differs.
    pub planner_provider: Option<String>,
    /// If it differs.
    pub coder_provider: Option<String>,
    /// If it differs.
    pub reviewer_provider: Option<String>,
    /// The agent program of roles for which none is named here or in the config; claude if absent.
    pub default_provider: Option<String>,
}

impl TeamOptions {
    fn number(&self, role: Role) -> Option<u32> {
        match role {
            Role::Planner => None,
            Role::Coder => self.coders,
            Role::CodeReviewer => self.reviewers,
        }
    }

    /// The programs that are named: for every role, then for each.
    pub fn named(&self) -> [Option<&str>; 4] {
        let all = [&self.provider, &self.planner_provider, &self.coder_provider, &self.reviewer_provider];
        all.map(Option::as_deref)
    }

    fn provider(&self, role: Role) -> Option<&str> {
        let own = match role {
            Role::Planner => &self.planner_provider,
            Role::Coder => &self.coder_provider,
            Role::CodeReviewer => &self.reviewer_provider,
        };
        own.as_deref().or(self.provider.as_deref())
    }
}

/// One planner, coders, code reviewers.
pub fn team_posts(config: &Config, options: &TeamOptions) -> Result<Vec<Post>, ProviderError> {
    let mut posts = Vec::new();
    for (role, default) in [(Role::Planner, 1), (Role::Coder, 2), (Role::CodeReviewer, 1)] {
        let configured = options.number(role).or(agent_count(config, role)?);
        // There is always exactly one planner.
        let number = if role == Role::Planner { default } else { configured.unwrap_or(default) };
        let asked = options.provider(role);
        let provider = match options.default_provider.as_deref() {
            Some(default) => Provider::choose_or(config, role, asked, default)?,
            None => Provider::choose(config, role, asked)?,
        };
        for _ in 0..number {
            let provider = provider.clone();
            posts.push(Post { role, agent: None, provider, task: None, once: false, interactive: false });
        }
    }
    Ok(posts)
}

/// Removes the planner from a team if another one is at work already, on another machine or in another
/// terminal; returns that one. A team of only a planner keeps it, and is refused.
pub fn leave_planning_to_other<'s>(
    posts: &mut Vec<Post>,
    project: &Project,
    state: &'s State,
) -> Option<(AgentId, &'s AgentRecord)> {
    let here = LivenessLock::running_agents(project.folder());
    // After a crash of this machine nothing holds the lock, although the lease is live.
    let is_alive = |agent: AgentId, entry: &AgentRecord| {
        entry.is_live(now()) && (here.contains(&agent) || !runs_here(project.folder(), entry))
    };
    let mut agents = state.board.agents.ready().into_iter().flatten().map(|(agent, entry)| (*agent, entry));
    let planner = agents.find(|(agent, entry)| agent.role() == Role::Planner && is_alive(*agent, entry))?;
    let has_others = posts.iter().any(|post| post.role != Role::Planner);
    has_others.then(|| posts.retain(|post| post.role != Role::Planner)).map(|()| planner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(roles: &str) -> Config {
        serde_json::from_str(&format!("{{\"roles\": {roles}}}")).unwrap()
    }

    fn team(config: &Config, options: &TeamOptions) -> Vec<(String, String, usize)> {
        let mut team: Vec<(String, String, usize)> = Vec::new();
        for post in team_posts(config, options).unwrap() {
            let (role, provider) = (post.role.to_string(), post.provider.name().to_owned());
            match team.iter_mut().find(|(known, ..)| *known == role) {
                Some((.., number)) => *number += 1,
                None => team.push((role, provider, 1)),
            }
        }
        team
    }

    fn expected(list: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
        list.iter().map(|(role, provider, number)| ((*role).into(), (*provider).into(), *number)).collect()
    }

    /// Covers: AG-16
    #[test]
    fn flags_override_the_config_and_the_config_overrides_the_defaults() {
        let defaults = [("planner", "claude", 1), ("coder", "claude", 2), ("code_reviewer", "claude", 1)];
        assert_eq!(team(&config("{}"), &TeamOptions::default()), expected(&defaults));
        let roles = r#"{"coder": {"provider": "codex", "count": 4}, "code-reviewer": {"count": 3}, "planner": {"count": 9}}"#;
        let configured = [("planner", "claude", 1), ("coder", "codex", 4), ("code_reviewer", "claude", 3)];
        assert_eq!(team(&config(roles), &TeamOptions::default()), expected(&configured));
        let options = TeamOptions {
            coders: Some(1),
            provider: Some("rehearsal".to_owned()),
            reviewer_provider: Some("goose".to_owned()),
            ..TeamOptions::default()
        };
        let requested =
            [("planner", "rehearsal", 1), ("coder", "rehearsal", 1), ("code_reviewer", "goose", 3)];
        assert_eq!(team(&config(roles), &options), expected(&requested));
    }

    /// Covers: AG-16
    #[test]
    fn an_invalid_count_is_reported_with_its_config_key() {
        for bad in ["-1", "\"many\"", "4.5"] {
            let config = config(&format!("{{\"coder\": {{\"count\": {bad}}}}}"));
            let error = team_posts(&config, &TeamOptions::default()).unwrap_err().to_string();
            assert_eq!(error, "config.roles.coder: count must be a number of agents", "{bad}");
        }
    }
}
