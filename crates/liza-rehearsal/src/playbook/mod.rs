//! The playbook: the scenes of each role, their conditions and their steps. Only a description, in any format
//! that serde reads; the program reads it from YAML.

mod step;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::protocol::{EXIT_STOP, Role, TriggerKind};

pub use step::FileContent;
pub(crate) use step::{
    Abandon, AddTask, Anomaly, Block, Discover, Handoff, Issue, Merge, Misbehaviour, PreCheck, Prior,
    ReadDiff, Reject, Step, Supersede, Unblock, Usage, WaitFor,
};

/// A whole playbook. A session for which it has no scene does the default.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Playbook {
    /// The project that the story is about, for `liza demo`; sessions do not read it.
    pub project: Option<SampleProject>,
    pub(crate) planner: Vec<Scene<{ Role::Planner as usize }>>,
    pub(crate) coder: Vec<Scene<{ Role::Coder as usize }>>,
    pub(crate) reviewer: Vec<Scene<{ Role::CodeReviewer as usize }>>,
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleProject {
    pub goal: String,
    /// Its files before work starts.
    pub files: Vec<FileContent>,
}

/// The steps of one session; `ROLE` is the number of its role.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scene<const ROLE: usize> {
    /// Always if absent.
    #[serde(default)]
    pub(crate) when: When,
    #[serde(default, rename = "do")]
    pub(crate) steps: Vec<RoleStep<ROLE>>,
    #[serde(default = "default_exit")]
    pub(crate) exit: u8,
}

fn default_exit() -> u8 {
    EXIT_STOP
}

/// The conditions of a scene; all that are present have to hold.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct When {
    /// A pattern for the task; for the planner, for the trigger's subject.
    pub(crate) task: Option<String>,
    pub(crate) agent: Option<String>,
    /// The coder's attempt, from 1.
    pub(crate) iteration: Option<u32>,
    /// The review of this coder's work, from 1.
    pub(crate) cycle: Option<u32>,
    /// True while a failed merge is being repaired.
    pub(crate) fix: Option<bool>,
    pub(crate) trigger: Option<TriggerKind>,
    /// The session of this role for this task, from 1; for the planner, of all its sessions.
    pub(crate) session: Option<u32>,
}

/// A step that this role has. Checked when it is read, so that the error has the step's line and column.
#[derive(Debug, Clone)]
pub(crate) struct RoleStep<const ROLE: usize>(pub(crate) Step);

impl<'de, const ROLE: usize> Deserialize<'de> for RoleStep<ROLE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let step = Step::deserialize(deserializer)?;
        match step.role() {
            Some(role) if role as usize != ROLE => Err(D::Error::custom(format!(
                "this step is for a {}, not for a {}; to run a command that the role may not run, use `misbehave: \
                 {{out-of-role: [...]}}`",
                role.title(),
                Role::ALL[ROLE].title()
            ))),
            Some(_) | None => Ok(Self(step)),
        }
    }
}

/// Compares a name with a pattern, in which `*` matches any text.
pub(crate) fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|at| name.get(at..).is_some_and(|tail| matches_pattern(rest, tail)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AG-15
    #[test]
    fn a_star_matches_any_text() {
        for (pattern, name) in [("core", "core"), ("*", ""), ("co*", "core"), ("*/é*.rs", "a/b/éa.rs")] {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("core", "cores"), ("co*e", "cored"), ("a*a", "a"), ("", "x")] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }

    /// Covers: AG-15
    #[test]
    fn a_playbook_needs_only_what_serde_reads() {
        let scene = r#"{"coder": [{"when": {"task": "a"}, "do": ["submit", {"wait": 1}]}]}"#;
        let playbook: Playbook = serde_json::from_str(scene).unwrap();
        assert_eq!((playbook.coder.len(), playbook.coder[0].steps.len(), playbook.coder[0].exit), (1, 2, 42));
        let error = serde_json::from_str::<Playbook>(r#"{"coder": [{"do": ["approve"]}]}"#).unwrap_err();
        assert!(
            error.to_string().starts_with("this step is for a Code Reviewer, not for a Coder"),
            "{error}"
        );
    }
}
