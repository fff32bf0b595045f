//! Recognizes the dependencies of a project by the names of files in its root, and proposes the settings that
//! bring them into every new checkout. Reads no file and runs nothing.

use liza_core::model::Config;
use serde::Serialize;

/// The folder of a Python environment.
pub(crate) const VENV: &str = ".venv";

/// The way of a dependency into a new checkout.
#[derive(Clone, Copy)]
enum Way {
    Setup(&'static str),
    /// Git ignores it, so it is taken from the person's checkout.
    Copy,
}

/// Each line is one language, of which the first file that is present counts.
const SIGNS: [&[(&str, Way)]; 4] = [
    &[("uv.lock", Way::Setup("uv sync --frozen")), (VENV, Way::Copy)],
    &[
        ("pnpm-lock.yaml", Way::Setup("pnpm install --frozen-lockfile")),
        ("package-lock.json", Way::Setup("npm ci")),
    ],
    &[("Cargo.lock", Way::Setup("cargo fetch --locked"))],
    &[("go.mod", Way::Setup("go mod download"))],
];

/// Proposed values of `config.setup` and `config.copy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ProposedSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
}

/// Proposes settings by the names that are present in the root of a project.
pub(crate) fn recognize(is_present: impl Fn(&str) -> bool) -> ProposedSettings {
    let mut proposed = ProposedSettings::default();
    let mut commands = Vec::new();
    for (name, way) in SIGNS.iter().filter_map(|signs| signs.iter().find(|(name, _)| is_present(name))) {
        match way {
            Way::Setup(command) => commands.push(*command),
            Way::Copy => proposed.copy.push((*name).to_owned()),
        }
    }
    proposed.setup = (!commands.is_empty()).then(|| commands.join(" && "));
    proposed
}

impl ProposedSettings {
    /// A setting of the person is never replaced. Whoever has set one of the two has decided about both.
    pub(crate) fn unless_set(self, config: &Config) -> Self {
        if config.setup.is_some() || !config.copy.is_empty() { Self::default() } else { self }
    }

    pub(crate) fn apply_to(&self, config: &mut Config) {
        config.setup = self.setup.clone().or_else(|| config.setup.take());
        config.copy.extend(self.copy.iter().cloned());
    }

    /// The commands that set them.
    pub(crate) fn commands(&self) -> Vec<String> {
        let setup = self.setup.iter().map(|command| format!("liza config setup '{command}'"));
        let copy = (!self.copy.is_empty()).then(|| format!("liza config copy '[{}]'", self.copy.join(", ")));
        setup.chain(copy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AX-21
    #[test]
    fn the_files_of_a_project_tell_what_a_new_checkout_needs() {
        let cases: [(&[&str], Option<&str>, &[&str]); 9] = [
            (&[], None, &[]),
            (&[".venv"], None, &[".venv"]),
            (&["uv.lock"], Some("uv sync --frozen"), &[]),
            (&["uv.lock", ".venv"], Some("uv sync --frozen"), &[]),
            (&["package-lock.json"], Some("npm ci"), &[]),
            (&["pnpm-lock.yaml", "package-lock.json"], Some("pnpm install --frozen-lockfile"), &[]),
            (&["Cargo.lock"], Some("cargo fetch --locked"), &[]),
            (&["go.mod"], Some("go mod download"), &[]),
            (&[".venv", "package-lock.json", "go.mod"], Some("npm ci && go mod download"), &[".venv"]),
        ];
        for (names, setup, copy) in cases {
            let proposed = recognize(|name| names.contains(&name));
            assert_eq!(
                (proposed.setup.as_deref(), &proposed.copy[..]),
                (setup, &copy.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..]),
                "{names:?}"
            );
        }
    }

    /// Covers: AX-21
    #[test]
    fn a_proposal_replaces_no_setting_and_is_a_command() {
        let proposed = recognize(|name| [".venv", "package-lock.json"].contains(&name));
        assert_eq!(proposed.commands(), ["liza config setup 'npm ci'", "liza config copy '[.venv]'"]);
        let mut config = Config { setup: Some("make deps".to_owned()), ..Config::default() };
        let left = proposed.clone().unless_set(&config);
        assert_eq!((left.commands().len(), left), (0, ProposedSettings::default()));
        config.setup = None;
        proposed.unless_set(&config).apply_to(&mut config);
        assert_eq!((config.setup.as_deref(), &config.copy[..]), (Some("npm ci"), &[".venv".to_owned()][..]));
    }
}
