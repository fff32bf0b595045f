//! Files of a checkout from which agent programs take settings, hooks, plugins or their environment when they start in it.
//!
//! A program does what they say before it reads its prompt, as itself: a code reviewer's program would do what the code
//! under review says.

use std::path::Path;

/// The names of such files and folders.
const NAMES: [&str; 10] = [
    ".agents",
    ".claude",
    ".codex",
    ".gemini",
    ".goose",
    ".mcp.json",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".vibe",
];

/// At the top of a checkout only: many projects have such files elsewhere.
const AT_THE_TOP: &str = ".env";

/// Whether agent programs take settings from a path: it has such a name, or is below such a folder, at any depth. Some file
/// systems take letters of either case for the same.
pub(crate) fn is_client_setting(path: &Path) -> bool {
    path.as_os_str().eq_ignore_ascii_case(AT_THE_TOP)
        || path.iter().any(|part| NAMES.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-13, IS-15
    #[test]
    fn settings_are_found_at_any_depth_and_in_any_case() {
        for setting in [".claude/settings.json", "pkg/.MCP.json", ".Gemini", "a/b/opencode.jsonc", ".env"] {
            assert!(is_client_setting(Path::new(setting)), "{setting}");
        }
        for other in ["CLAUDE.md", "claude/settings.json", ".env.example", "web/.env", "src/codex.rs"] {
            assert!(!is_client_setting(Path::new(other)), "{other}");
        }
    }
}
