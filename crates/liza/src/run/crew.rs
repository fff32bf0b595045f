//! Who is in the team: as the command line says, else as the config says, else two coders and a code reviewer.

use liza_core::model::{Config, Role};

use crate::providers::{Provider, ProviderError, agent_count};
use crate::supervisor::Post;

/// What the command line asks for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// How many coders.
    pub coders: Option<u32>,
    /// How many code reviewers.
    pub reviewers: Option<u32>,
    /// The agent program of every role.
    pub provider: Option<String>,
    /// The planner's own.
    pub planner_provider: Option<String>,
    /// The coders' own.
    pub coder_provider: Option<String>,
    /// The code reviewers' own.
    pub reviewer_provider: Option<String>,
}

impl Wanted {
    fn number(&self, role: Role) -> Option<u32> {
        match role {
            Role::Planner => None,
            Role::Coder => self.coders,
            Role::CodeReviewer => self.reviewers,
        }
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

/// The posts of the team: one planner, coders, code reviewers.
///
/// # Errors
///
/// When a provider is not known, or the config makes no sense.
pub fn crew(config: &Config, wanted: &Wanted) -> Result<Vec<Post>, ProviderError> {
    let mut posts = Vec::new();
    for (role, usual) in [(Role::Planner, 1), (Role::Coder, 2), (Role::CodeReviewer, 1)] {
        let said = wanted.number(role).or(agent_count(config, role)?);
        // There is one planner, whatever anybody says.
        let number = if role == Role::Planner { usual } else { said.unwrap_or(usual) };
        let provider = Provider::choose(config, role, wanted.provider(role))?;
        for _ in 0..number {
            let provider = provider.clone();
            posts.push(Post { role, agent: None, provider, task: None, once: false, interactive: false });
        }
    }
    Ok(posts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(roles: &str) -> Config {
        serde_json::from_str(&format!("{{\"roles\": {roles}}}")).unwrap()
    }

    fn seen(config: &Config, wanted: &Wanted) -> Vec<(String, String, usize)> {
        let mut seen: Vec<(String, String, usize)> = Vec::new();
        for post in crew(config, wanted).unwrap() {
            let (role, provider) = (post.role.to_string(), post.provider.name().to_owned());
            match seen.iter_mut().find(|(known, ..)| *known == role) {
                Some((.., number)) => *number += 1,
                None => seen.push((role, provider, 1)),
            }
        }
        seen
    }

    fn told(list: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
        list.iter().map(|(role, provider, number)| ((*role).into(), (*provider).into(), *number)).collect()
    }

    /// Covers: AG-16
    #[test]
    fn flags_go_before_the_config_and_the_config_before_the_usual() {
        let usual = [("planner", "claude", 1), ("coder", "claude", 2), ("code_reviewer", "claude", 1)];
        assert_eq!(seen(&config("{}"), &Wanted::default()), told(&usual));
        let roles = r#"{"coder": {"provider": "codex", "count": 4}, "code-reviewer": {"count": 3}, "planner": {"count": 9}}"#;
        let said = [("planner", "claude", 1), ("coder", "codex", 4), ("code_reviewer", "claude", 3)];
        assert_eq!(seen(&config(roles), &Wanted::default()), told(&said));
        let wanted = Wanted {
            coders: Some(1),
            provider: Some("rehearsal".to_owned()),
            reviewer_provider: Some("goose".to_owned()),
            ..Wanted::default()
        };
        let asked = [("planner", "rehearsal", 1), ("coder", "rehearsal", 1), ("code_reviewer", "goose", 3)];
        assert_eq!(seen(&config(roles), &wanted), told(&asked));
    }

    /// Covers: AG-16
    #[test]
    fn a_count_that_is_none_is_told_with_its_place() {
        for bad in ["-1", "\"many\"", "4.5"] {
            let config = config(&format!("{{\"coder\": {{\"count\": {bad}}}}}"));
            let error = crew(&config, &Wanted::default()).unwrap_err().to_string();
            assert_eq!(error, "config.roles.coder: count must be a number of agents", "{bad}");
        }
    }
}
