//! A project, a scripted model, and the real programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::model_server::{Conversation, ModelServer, Move};
use crate::support::TestProject;

/// A real agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Claude,
    Codex,
    Goose,
    Gemini,
    Opencode,
    Copilot,
    Qwen,
    Vibe,
}

impl Client {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
            Client::Goose => "goose",
            Client::Gemini => "gemini",
            Client::Opencode => "opencode",
            Client::Copilot => "copilot",
            Client::Qwen => "qwen",
            Client::Vibe => "vibe",
        }
    }
}

/// Where the programs are.
fn programs() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("clients/bin")
}

/// A project whose agents think with a script.
pub(crate) struct Scripted {
    pub(crate) project: TestProject,
    pub(crate) model: ModelServer,
}

impl Scripted {
    pub(crate) fn new(brain: impl Fn(&Conversation) -> Move + Send + Sync + 'static) -> Self {
        let scripted = Self { project: TestProject::new(), model: ModelServer::start(brain) };
        scripted.write_codex_config();
        scripted.write_gemini_settings();
        scripted.write_opencode_config();
        scripted.write_qwen_settings();
        scripted.write_vibe_config();
        scripted
    }

    fn write_gemini_settings(&self) {
        // Without a model of its own choice it asks another one which to take, before each turn.
        let settings = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-pro"}}"#;
        self.write(".gemini/settings.json", settings);
    }

    fn write_opencode_config(&self) {
        let url = self.model.url();
        let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "scripted"}, "models": {"m": {"name": "m"}}});
        let config = json!({"provider": {"scripted": provider}, "model": "scripted/m", "autoupdate": false});
        self.write(".config/opencode/opencode.json", &config.to_string());
    }

    fn write_qwen_settings(&self) {
        // A variable for the address would be read by codex and opencode, too.
        let url = self.model.url();
        let auth = json!({"selectedType": "openai", "baseUrl": format!("{url}/v1"), "apiKey": "no-real-key"});
        let settings = json!({"security": {"auth": auth}, "model": {"name": "m"}});
        self.write(".qwen/settings.json", &settings.to_string());
    }

    fn write_vibe_config(&self) {
        let url = self.model.url();
        let config = format!(
            "active_model = \"m\"\nenable_telemetry = false\nenable_update_checks = false\n[[providers]]\nname = \"scripted\"\n\
             api_base = \"{url}/v1\"\napi_key_env_var = \"MISTRAL_API_KEY\"\n[[models]]\nname = \"m\"\nprovider = \"scripted\"\n\
             alias = \"m\"\n"
        );
        self.write(".vibe/config.toml", &config);
    }

    /// Writes a file in the home folder.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.project.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn write_codex_config(&self) {
        let url = self.model.url();
        let config = format!(
            "model = \"gpt-5\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{url}/v1\"\nenv_key = \"SCRIPTED_API_KEY\"\nwire_api = \"responses\"\n"
        );
        self.write(".codex/config.toml", &config);
    }

    /// `liza` with everything that the programs need to find the scripted model.
    pub(crate) fn liza(&self, clients: &[Client]) -> Command {
        let bin = programs();
        for client in clients {
            let program = bin.join(client.name());
            assert!(
                program.exists(),
                "{} is missing: .ci/install-clients {}",
                program.display(),
                client.name()
            );
        }
        let path = std::env::var("PATH").unwrap();
        let mut liza = self.project.program();
        liza.env("PATH", format!("{}:{path}", bin.display()))
            .env("ANTHROPIC_BASE_URL", self.model.url())
            .env("ANTHROPIC_API_KEY", "no-real-key")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("SCRIPTED_API_KEY", "no-real-key")
            .env("GOOSE_PROVIDER", "openai")
            .env("GOOSE_MODEL", "gpt-4o")
            .env("GOOSE_DISABLE_KEYRING", "1")
            .env("GOOGLE_GEMINI_BASE_URL", self.model.url())
            .env("GEMINI_API_KEY", "no-real-key")
            .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", self.model.url()))
            .env("COPILOT_PROVIDER_API_KEY", "no-real-key")
            .env("COPILOT_MODEL", "gpt-5")
            .env("COPILOT_OFFLINE", "true")
            .env("OPENAI_HOST", self.model.url())
            .env("OPENAI_API_KEY", "no-real-key");
        if clients.contains(&Client::Vibe) {
            liza.env("MISTRAL_API_KEY", "no-real-key");
        }
        liza
    }
}

/// The role that a prompt is for.
pub(crate) fn role(conversation: &Conversation) -> &str {
    line_after(conversation, "ROLE: ")
}

/// The liza program that a prompt names.
pub(crate) fn liza_of(conversation: &Conversation) -> &str {
    line_after(conversation, "LIZA: ").split(" (").next().unwrap_or_default()
}

fn line_after<'c>(conversation: &'c Conversation, start: &str) -> &'c str {
    conversation.text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default()
}
