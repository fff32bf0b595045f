//! Settings of the confinement: how strictly a session is kept inside its own folders.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// As far as the system can; the level that was reached is shown.
    #[default]
    Auto,
    /// No session starts below `sandbox_min`.
    Require,
    Off,
}

/// The lowest level at which `sandbox: require` starts a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMin {
    #[serde(alias = "partly")]
    Unenforced,
    /// Without namespaces.
    #[default]
    #[serde(alias = "enforced")]
    Restricted,
    Isolated,
}

/// The place of agents' checkouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorktreePlace {
    /// Below the root of the project.
    #[default]
    Inside,
    /// Where no tool that walks through the project meets them.
    Outside,
}

/// The former choices of what a session can read in the home folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxRead {
    Home,
    Strict,
}

/// The hosts that a role's sessions can reach.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Network {
    #[default]
    Open,
    /// The hosts of the agent program's model, through Liza's proxy.
    ModelOnly,
}
