//! Reads the sections besides the tasks: agents, config, goal, sprint, and the append-only lists. A missing
//! section is empty or has its defaults; an invalid one has the reason.

use indexmap::IndexMap;
use liza_core::model::{
    AgentId, AgentRecord, Board, Config, Fault, Goal, Handoff, Journal, Loaded, Section, Sprint, TaskId,
    Timestamp,
};
use serde::de::DeserializeOwned;

use super::decode_config;
use super::view::{StateView, fault_of, missing_section};
use crate::yaml::{Node, NodeKind, YamlError, decode, parse};

impl StateView<'_> {
    pub(crate) fn load_sections(&self, board: &mut Board, wanted: &[Section]) {
        for section in wanted {
            match section {
                Section::Agents => board.agents = self.agents(),
                Section::Config => board.config = self.config(),
                Section::Goal => board.goal = self.section(*section),
                Section::Sprint => board.sprint = self.sprint(),
                Section::CircuitBreaker => board.circuit_breaker = self.section(*section),
                Section::Discovered => board.discovered = self.section(*section),
                Section::Handoff => board.handoff = self.handoff(),
                Section::DirectEdits => board.direct_edits = self.section(*section),
            }
        }
    }

    /// The valid entries of the agents: an invalid one affects only its own agent.
    fn agents(&self) -> Loaded<IndexMap<AgentId, AgentRecord>> {
        let valid = |node: &Node<'_>| match &node.kind {
            NodeKind::Map(entries, _) => {
                Ok(entries.iter().filter_map(|(key, value)| agent(key, value).ok()).collect())
            }
            NodeKind::Scalar(..) | NodeKind::List(..) => decode(node),
        };
        self.decoded(Section::Agents.key(), valid, || Ok(IndexMap::new()))
    }

    pub(super) fn agent_faults(&self) -> Vec<Fault> {
        let errors = |node: &Node<'_>| {
            let named = |(key, value): &(Node<'_>, Node<'_>)| {
                let error = agent(key, value).err()?;
                let field = error.key.map(|key| format!("{key}: ")).unwrap_or_default();
                let message = format!("{field}{}", error.message);
                Some(YamlError {
                    message,
                    key: Some(format!("agents.{}", key.text().unwrap_or_default())),
                    ..error
                })
            };
            Ok(node.entries().iter().filter_map(named).collect::<Vec<_>>())
        };
        let found = self.with_section("agents", errors).ok().flatten().unwrap_or_default();
        found.into_iter().map(|error| fault_of("agents", self.in_section("agents", error))).collect()
    }

    /// The sprint; a first one if the file has none.
    fn sprint(&self) -> Loaded<Sprint> {
        let absent = || {
            let goal = self.with_section("goal", |node| decode::<Goal>(node)).ok().flatten();
            let (id, created) = goal.map_or((String::new(), None), |goal| (goal.id, goal.created));
            Ok(Sprint::begin(1, &id, created.unwrap_or(Timestamp::from_unix(0))))
        };
        self.decoded(Section::Sprint.key(), |node| decode(node), absent)
    }

    /// The first sprint of a file that has none, for the next write.
    pub(crate) fn missing_sprint(&self, now: Timestamp) -> Option<Sprint> {
        let is_missing = match &self.tree {
            Some(tree) => tree.get("sprint").is_none(),
            None => self.block("sprint").is_none(),
        };
        let goal = || self.with_section("goal", |node| decode::<Goal>(node)).ok().flatten();
        is_missing.then(|| Sprint::begin(1, &goal().map(|goal| goal.id).unwrap_or_default(), now))
    }

    /// The number of invalid keys of the config, each of which makes the whole section invalid.
    pub(crate) fn config_faults(&self) -> usize {
        let count = |node: &Node<'_>| {
            let alone = |entry: &&(Node<'_>, Node<'_>)| {
                decode::<Config>(&node.with_entries(vec![(*entry).clone()])).is_err()
            };
            Ok(node.entries().iter().filter(alone).count())
        };
        self.with_section("config", count).ok().flatten().unwrap_or(0)
    }

    fn section<T: DeserializeOwned>(&self, section: Section) -> Loaded<T> {
        self.decoded(
            section.key(),
            |node| decode(node),
            || {
                // A missing section is empty if its type allows that.
                parse("{}")
                    .and_then(|(node, _)| decode(&node))
                    .or_else(|_| parse("[]").and_then(|(node, _)| decode(&node)))
            },
        )
    }

    fn decoded<T>(
        &self,
        name: &str,
        decode: impl FnOnce(&Node<'_>) -> Result<T, YamlError>,
        absent: impl FnOnce() -> Result<T, YamlError>,
    ) -> Loaded<T> {
        match self.with_section(name, decode) {
            Ok(Some(content)) => Loaded::Ready(content),
            Err(error) => Loaded::Broken(fault_of(name, error)),
            Ok(None) => {
                absent().map_or_else(|_| Loaded::Broken(fault_of(name, missing_section(name))), Loaded::Ready)
            }
        }
    }

    fn config(&self) -> Loaded<Config> {
        self.decoded("config", decode_config, || Ok(Config::default()))
    }

    fn handoff(&self) -> Loaded<IndexMap<TaskId, Handoff>> {
        let read = |node: &Node<'_>| match single_handoff(node) {
            Some(task) => Ok(IndexMap::from_iter([(decode(task)?, decode(node)?)])),
            None => decode(node),
        };
        self.decoded("handoff", read, || Ok(IndexMap::new()))
    }

    /// Loads the append-only list of a section, if it has one.
    pub(crate) fn load_journal(&self, journal: &mut Journal, section: &str) {
        let faults = &mut journal.faults;
        match section {
            "anomalies" => journal.anomalies = self.entries(section, |node| Some(node), faults),
            "human_notes" => journal.human_notes = self.entries(section, |node| Some(node), faults),
            "spec_changes" => journal.spec_changes = self.entries(section, |node| Some(node), faults),
            "goal" => {
                journal.alignment_history =
                    self.entries(section, |node| node.get("alignment_history"), faults);
            }
            _ => {}
        }
    }

    /// The valid entries of a list; the others become faults.
    fn entries<T: DeserializeOwned>(
        &self,
        name: &str,
        find: for<'n> fn(&'n Node<'n>) -> Option<&'n Node<'n>>,
        faults: &mut Vec<Fault>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let read = |node: &Node<'_>| {
            let mut errors = Vec::new();
            let list = find(node);
            if let Some(list) =
                list.filter(|list| !list.is_null() && !matches!(list.kind, NodeKind::List(..)))
            {
                let message = format!("expected a list, found {}", list.describe());
                errors.push(YamlError::at(message, list.position));
            }
            for node in list.map(Node::items).unwrap_or_default() {
                match decode(node) {
                    Ok(entry) => found.push(entry),
                    Err(error) => errors.push(error),
                }
            }
            Ok(errors)
        };
        match self.with_section(name, read) {
            Ok(errors) => {
                let positioned = |error| fault_of(name, self.in_section(name, error));
                faults.extend(errors.into_iter().flatten().map(positioned));
            }
            Err(error) => faults.push(fault_of(name, error)),
        }
        found
    }
}

fn agent(key: &Node<'_>, value: &Node<'_>) -> Result<(AgentId, AgentRecord), YamlError> {
    Ok((decode(key)?, decode(value)?))
}

/// The task of a handoff section in the old form, which holds only one handoff.
pub(super) fn single_handoff<'n>(node: &'n Node<'n>) -> Option<&'n Node<'n>> {
    node.get("agent")?;
    node.get("task")
}
