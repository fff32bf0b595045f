//! Files of a checkout from which agent programs take settings, hooks, plugins or their environment at their
//! start: a code reviewer's program would obey the code under review. Instructions for the model are
//! separate: they are part of many changes.

use std::path::Path;

use liza_core::model::Config;

use super::builtin::built_in;
use super::config::find_template;

/// Names that belong to no particular program; each program has its own.
const NAMES: [&str; 1] = [".envrc"];

/// A folder and a file in it; the rest of the folder is text.
const IN_FOLDERS: [(&str, &str); 7] = [
    (".cursor", "hooks.json"),
    (".cursor", "mcp.json"),
    (".github", "copilot"),
    (".github", "hooks"),
    (".github", "lsp.json"),
    (".github", "mcp.json"),
    (".vscode", "mcp.json"),
];

/// The names of files that are read as instructions, in any folder.
const INSTRUCTIONS: [&str; 10] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "copilot-instructions.md",
    ".cursorrules",
    "GEMINI.md",
    ".goosehints",
    "QWEN.md",
    ".windsurfrules",
];

const INSTRUCTION_FOLDERS: [(&str, &str); 4] =
    [(".cursor", "rules"), (".github", "agents"), (".github", "instructions"), (".github", "skills")];

/// At the top of a checkout only: many projects have such files elsewhere.
const AT_THE_TOP: &str = ".env";

/// The files of a checkout from which agent programs take settings.
#[derive(Debug, Clone)]
pub struct SettingFiles {
    names: Vec<String>,
}

impl SettingFiles {
    /// Those of the built-in programs, and of the ones that the config adds.
    pub fn of(config: &Config) -> Self {
        let own = config.providers.keys().filter_map(|name| find_template(config, name).ok());
        let own = own.flat_map(|template| template.in_checkouts);
        let known = built_in().flat_map(|(_, template)| template.in_checkouts.iter().cloned());
        Self { names: NAMES.map(str::to_owned).into_iter().chain(known).chain(own).collect() }
    }

    /// True if programs take settings from a path: it or a folder above it has such a name. Case is ignored, as
    /// some file systems do.
    pub fn contains(&self, path: &Path) -> bool {
        path.as_os_str().eq_ignore_ascii_case(AT_THE_TOP)
            || path.iter().any(|part| self.names.iter().any(|name| part.eq_ignore_ascii_case(name)))
            || has_folder(path, &IN_FOLDERS)
    }
}

/// True if agent programs read a path as instructions for the model.
pub fn is_instruction(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    INSTRUCTIONS.iter().any(|known| name.eq_ignore_ascii_case(known))
        || has_folder(path, &INSTRUCTION_FOLDERS)
}

fn has_folder(path: &Path, known: &[(&str, &str)]) -> bool {
    path.iter().zip(path.iter().skip(1)).any(|(folder, entry)| {
        known.iter().any(|known| folder.eq_ignore_ascii_case(known.0) && entry.eq_ignore_ascii_case(known.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-13, IS-15
    #[test]
    fn settings_are_found_at_any_depth_and_in_any_case() {
        let settings = [
            ".claude/settings.json",
            "pkg/.MCP.json",
            ".Gemini",
            "a/b/opencode.jsonc",
            ".env",
            "web/.envrc",
            ".cursor/mcp.json",
            "a/.Cursor/MCP.json",
            ".github/lsp.json",
            ".github/copilot/settings.json",
            ".vscode/mcp.json",
        ];
        let known = SettingFiles::of(&Config::default());
        for setting in settings {
            assert!(known.contains(Path::new(setting)), "{setting}");
        }
        let others = [
            "CLAUDE.md",
            "claude/settings.json",
            ".env.example",
            "web/.env",
            "src/codex.rs",
            ".cursor/rules/a.mdc",
            ".vscode/settings.json",
            "mcp.json",
        ];
        for other in others {
            assert!(!known.contains(Path::new(other)), "{other}");
        }
    }

    /// Covers: AX-34
    #[test]
    fn a_program_of_ones_own_names_its_files() {
        let config = serde_json::from_str(r#"{"providers": {"own": {"in_checkouts": [".own"]}}}"#).unwrap();
        let path = Path::new("a/.own/hooks.json");
        assert!(SettingFiles::of(&config).contains(path));
        assert!(!SettingFiles::of(&Config::default()).contains(path));
    }

    /// Covers: IS-13
    #[test]
    fn instructions_are_found_in_any_folder() {
        let files = [
            "CLAUDE.md",
            "a/b/claude.local.md",
            "AGENTS.md",
            "web/GEMINI.md",
            ".goosehints",
            "a/.cursorrules",
            ".github/copilot-instructions.md",
            ".cursor/rules/deep/a.mdc",
        ];
        for file in files {
            assert!(is_instruction(Path::new(file)), "{file}");
        }
        for other in
            ["README.md", "AGENTS.md/other", "docs/agents.rst", "rules/a.mdc", ".github/workflows/a.yml"]
        {
            assert!(!is_instruction(Path::new(other)), "{other}");
        }
    }
}
