//! The goal-wide settings and their defaults; a task may override some of them for itself.

use std::time::Duration;

use indexmap::IndexMap;
use liza_ids::gate::GatePatterns;
use liza_ids::{GateSettings, Role, Sandbox, SandboxMin, SandboxRead, Seconds, WorktreePlace};
use serde::{Deserialize, Serialize};

use crate::model::impact::ReviewDiversity;
use crate::model::record::TaskRecord;
use crate::model::spending::{Budget, Price};
use crate::model::team_file::TeamFile;
use crate::model::value::Fields;

/// The `config` section. An absent key has its default; a new blackboard has only the keys that differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The most claims of a task by one coder.
    pub max_coder_iterations: u32,
    /// The most rejections of one coder's work on a task.
    pub max_review_cycles: u32,
    /// The time between two renewals of a lease.
    pub heartbeat_interval: Seconds,
    pub lease_duration: Seconds,
    /// The time after which an idle supervisor looks for work again by itself.
    pub coder_poll_interval: Seconds,
    /// The time that a lone supervisor waits for work before it ends.
    pub coder_max_wait: Seconds,
    /// The branch that approved work is merged to.
    pub integration_branch: String,
    /// The branch that the human works on, recorded by `init`.
    pub main_branch: Option<String>,
    /// The git remote through which machines exchange work; without one, all work is on this machine.
    pub remote: Option<String>,
    /// The longest time for a command to the git remote.
    pub remote_limit: Seconds,
    /// The shared file as the human accepted it. The other settings already include it.
    pub team_file: Option<TeamFile>,
    /// If true, the human approves the planner's tasks before coders get them.
    pub plan_approval: bool,
    /// The author of agents' commits.
    pub agent_commits: AgentCommits,
    /// The rule for submitted changes of files from which agent programs take settings.
    pub client_settings: ClientSettings,
    pub sandbox: Sandbox,
    /// The lowest level at which `sandbox: require` starts a session.
    pub sandbox_min: SandboxMin,
    /// The place of agents' checkouts.
    pub worktrees: WorktreePlace,
    /// Without effect: sessions read the tools in the home folder and nothing else there.
    pub sandbox_read: Option<SandboxRead>,
    /// Further files and folders that sessions can read.
    pub sandbox_readable: Vec<String>,
    /// Further files and folders that sessions can write.
    pub sandbox_writable: Vec<String>,
    /// Further sockets, or folders with sockets, that sessions can connect to.
    pub sandbox_sockets: Vec<String>,
    /// Variables of the person's environment that sessions, and the code that they test, get in addition.
    pub pass_env: Vec<String>,
    /// The newest version of Landlock to use; for trying out what an older kernel gives.
    pub sandbox_max_abi: Option<u32>,
    /// Further hosts that sessions with `network: model-only` can reach: `HOST` or `HOST:PORT`.
    pub model_hosts: Vec<String>,
    /// Further TCP ports that sessions with `network: model-only` can use, on every host.
    pub network_ports: Vec<u16>,
    /// A program that is put in front of each session, with its arguments.
    pub exec_wrapper: Vec<String>,
    /// The address that alarms are posted to.
    pub escalation_webhook: Option<String>,
    /// Crashes in a row that block a task.
    pub max_crashes: u32,
    /// Sessions without a result that block a task.
    pub max_idle_exits: u32,
    /// The most sessions on a task and its replacements, of coders and code reviewers, until a refill.
    pub max_sessions: u32,
    /// The most sessions of the planner in a sprint without a merge.
    pub max_planner_sessions: u32,
    /// Blocks of a task after which only the human can unblock it.
    pub max_blocks: u32,
    /// Replacements in a row after which only the human can replace the task again.
    pub max_rescopes: u32,
    /// The spending limits of sessions, in dollars or tokens.
    pub budget: Budget,
    /// The token prices by model, for clients that do not report their cost.
    pub prices: IndexMap<String, Price>,
    /// The time that a running session may continue after PAUSE or CHECKPOINT.
    pub stop_grace: Seconds,
    /// The longest time of one session.
    pub session_limit: Seconds,
    /// The longest silence of a session before an alarm.
    pub quiet_limit: Seconds,
    pub gate: GateSettings,
    /// Patterns of files whose change has a high impact.
    pub high_impact: Vec<String>,
    /// The most changed lines of work with a normal impact.
    pub high_impact_lines: u32,
    pub review_diversity: ReviewDiversity,
    /// The longest time of the integration test.
    pub integration_test_limit: Seconds,
    /// Commands that all work must pass before it is reviewed and merged.
    pub validation: Vec<String>,
    /// The longest time of one of these commands.
    pub validation_limit: Seconds,
    pub validation_start: ValidationStart,
    /// The folder with acceptance tests that no session reads; run on the merged files before the branch moves.
    pub holdout: Option<String>,
    /// If true, a coder's session resumes the client's conversation after a rejection, where the client can.
    pub resume_conversation: bool,
    /// A command that is run in every new checkout before it is used.
    pub setup: Option<String>,
    /// The longest time of `setup`.
    pub setup_limit: Seconds,
    /// Ignored files and folders of the human's checkout that every new checkout gets.
    pub copy: Vec<String>,
    /// The longest wait of a command for the lock.
    pub lock_timeout: Seconds,
    /// The longest time of a command in a session.
    pub command_limit: Seconds,
    pub providers: Fields,
    /// Provider and model, by role.
    pub roles: Fields,
    /// The settings of a shared blackboard that this machine does not use; never written.
    #[serde(skip)]
    pub unaccepted: Option<Box<Unaccepted>>,
}

/// Settings of a shared blackboard that the person of this machine has not accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Unaccepted {
    /// Their names, such as `setup` or `roles.coder.network`.
    pub keys: Vec<String>,
    /// All settings as the blackboard has them.
    pub shared: Config,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentCommits {
    /// The agent, for the person, with the person's address.
    #[default]
    Agent,
    Person,
}

/// What the commands that validate work begin with, where rooms can make copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValidationStart {
    /// The build that a judged run of an integration head has left on this machine.
    #[default]
    Head,
    Nothing,
}

/// The rule for submitted changes of files from which agent programs take settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientSettings {
    #[default]
    Refuse,
    /// The reviewer's program starts with the changed settings.
    Allow,
}

const COMMAND_LIMIT: Seconds = Seconds(120);
const SETUP_LIMIT: Seconds = Seconds(900);
const REMOTE_LIMIT: Seconds = Seconds(120);

impl Default for Config {
    fn default() -> Self {
        Self {
            max_coder_iterations: 10,
            max_review_cycles: 5,
            heartbeat_interval: Seconds(60),
            lease_duration: Seconds(300),
            coder_poll_interval: Seconds(30),
            coder_max_wait: Seconds(300),
            integration_branch: "integration".to_owned(),
            main_branch: None,
            remote: None,
            remote_limit: REMOTE_LIMIT,
            team_file: None,
            plan_approval: false,
            agent_commits: AgentCommits::default(),
            client_settings: ClientSettings::default(),
            sandbox: Sandbox::default(),
            sandbox_min: SandboxMin::default(),
            worktrees: WorktreePlace::default(),
            sandbox_read: None,
            sandbox_readable: Vec::new(),
            sandbox_writable: Vec::new(),
            sandbox_sockets: Vec::new(),
            pass_env: Vec::new(),
            sandbox_max_abi: None,
            model_hosts: Vec::new(),
            network_ports: Vec::new(),
            exec_wrapper: Vec::new(),
            escalation_webhook: None,
            max_crashes: 5,
            max_idle_exits: 3,
            max_sessions: 60,
            max_planner_sessions: 20,
            max_blocks: 5,
            max_rescopes: 3,
            budget: Budget::default(),
            prices: IndexMap::new(),
            stop_grace: Seconds(120),
            session_limit: Seconds(7200),
            quiet_limit: Seconds(900),
            gate: GateSettings::default(),
            high_impact: Vec::new(),
            high_impact_lines: 2000,
            review_diversity: ReviewDiversity::default(),
            integration_test_limit: Seconds(1800),
            validation: Vec::new(),
            validation_limit: Seconds(1800),
            validation_start: ValidationStart::default(),
            holdout: None,
            resume_conversation: false,
            setup: None,
            setup_limit: SETUP_LIMIT,
            copy: Vec::new(),
            lock_timeout: Seconds(10),
            command_limit: COMMAND_LIMIT,
            providers: Fields::new(),
            roles: Fields::new(),
            unaccepted: None,
        }
    }
}

impl Config {
    /// The files that judge work: those of `gate`, and those that `copy` names, because a file that a commit brings there
    /// would be kept instead of the person's.
    pub fn gate_patterns(&self) -> GatePatterns {
        let watched = self.gate.watched.iter().chain(&self.copy).cloned().collect();
        GatePatterns::new(&GateSettings { runs: self.gate.runs.clone(), watched })
    }

    /// The task's own limit, or that of the goal.
    pub fn max_iterations(&self, task: &TaskRecord) -> u32 {
        task.max_iterations.or(task.max_coder_iterations).unwrap_or(self.max_coder_iterations)
    }

    /// The task's own limit, or that of the goal.
    pub fn max_review_cycles(&self, task: &TaskRecord) -> u32 {
        task.max_review_cycles.unwrap_or(self.max_review_cycles)
    }

    /// The model that the sessions of a role use, if the settings name one.
    pub fn model(&self, role: Role) -> Option<&str> {
        let entry = self.roles.get(role.id_prefix()).or_else(|| self.roles.get(&role.to_string()))?;
        entry.as_map()?.get("model")?.as_text()
    }

    /// The longest time of all tests of one merge.
    pub fn merge_test_limit(&self) -> Duration {
        let tests = 1 + u32::from(self.holdout.is_some());
        Duration::from_secs(self.integration_test_limit.0).saturating_mul(tests)
    }

    /// The task's own lease, or that of the goal.
    pub fn lease(&self, task: &TaskRecord) -> Seconds {
        task.lease_duration_override.unwrap_or(self.lease_duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-13
    #[test]
    fn an_empty_section_means_the_defaults_and_a_task_overrides_its_own() {
        let config: Config = serde_json::from_str("{}").unwrap();
        assert_eq!(config, Config::default());
        let figures = (
            config.max_coder_iterations,
            config.max_review_cycles,
            config.heartbeat_interval.0,
            config.lease_duration.0,
            config.coder_poll_interval.0,
            config.coder_max_wait.0,
        );
        assert_eq!(figures, (10, 5, 60, 300, 30, 300));
        assert_eq!(
            (config.integration_branch.as_str(), config.escalation_webhook.clone()),
            ("integration", None)
        );
        let ours = (config.max_crashes, config.max_idle_exits, config.stop_grace.0, config.session_limit.0);
        assert_eq!(ours, (5, 3, 120, 7200));
        assert_eq!((config.integration_test_limit.0, config.lock_timeout.0), (1800, 10));

        let plain = TaskRecord::default();
        assert_eq!((config.max_iterations(&plain), config.max_review_cycles(&plain)), (10, 5));
        let own = TaskRecord {
            max_iterations: Some(15),
            max_review_cycles: Some(2),
            lease_duration_override: Some(Seconds(900)),
            ..TaskRecord::default()
        };
        let limits = (config.max_iterations(&own), config.max_review_cycles(&own), config.lease(&own).0);
        assert_eq!(limits, (15, 2, 900));
    }
}
