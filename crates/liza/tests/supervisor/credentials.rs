//! The home folder of the person: sessions and code under test read the tools in it, and no credential.

use std::fs;

use crate::fixture::Bench;

/// Typical files with keys, tokens, passwords, and what a person has typed.
#[rustfmt::skip]
const CREDENTIALS: [&str; 124] = [
    ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/id_ecdsa", ".ssh/config", ".ssh/authorized_keys",
    ".gnupg/private-keys-v1.d/key.key", ".gnupg/secring.gpg", ".aws/credentials", ".aws/config",
    ".aws/sso/cache/token.json", ".azure/accessTokens.json", ".azure/msal_token_cache.json",
    ".azure/azureProfile.json", ".config/gcloud/credentials.db",
    ".config/gcloud/application_default_credentials.json", ".config/gcloud/access_tokens.db", ".boto",
    ".s3cfg", ".kube/config", ".docker/config.json", ".docker/machine/certs/key.pem",
    ".config/containers/auth.json", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".git-credentials",
    ".config/git/credentials", ".config/gh/hosts.yml", ".config/glab-cli/config.yml", ".config/hub",
    ".config/tea/config.yml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pip/pip.conf",
    ".config/pip/pip.conf", ".config/pypoetry/auth.toml", ".gem/credentials", ".bundle/config",
    ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".ivy2/.credentials", ".sbt/credentials", ".nuget/NuGet/NuGet.Config",
    ".config/NuGet/NuGet.Config", ".composer/auth.json", ".config/composer/auth.json",
    ".pub-cache/credentials.json", ".config/dart/pub-credentials.json", ".hex/hex.config", ".cabal/config",
    ".stack/config.yaml", ".julia/servers/pkg/auth.toml", ".condarc", ".terraformrc",
    ".terraform.d/credentials.tfrc.json", ".vault-token", ".config/sops/age/keys.txt",
    ".config/age/key.txt", ".password-store/email.gpg", ".config/op/config", ".config/Bitwarden/data.json",
    ".config/1Password/settings.json", ".local/share/keyrings/login.keyring",
    ".local/share/kwalletd/kdewallet.kwl", ".pgpass", ".my.cnf", ".mylogin.cnf", ".mongorc.js",
    ".rediscli_auth", ".dbshell", ".psql_history", ".mysql_history", ".sqlite_history", ".bash_history",
    ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".node_repl_history",
    ".irb_history", ".lesshst", ".viminfo", ".config/doctl/config.yaml", ".config/linode-cli",
    ".config/hcloud/cli.toml", ".fly/config.yml", ".config/netlify/config.json", ".netlify/config.json",
    ".vercel/auth.json", ".local/share/com.vercel.cli/auth.json", ".config/heroku/credentials",
    ".config/configstore/firebase-tools.json", ".config/stripe/config.toml", ".config/sentry-cli.toml",
    ".sentryclirc", ".config/rclone/rclone.conf", ".config/filezilla/sitemanager.xml",
    ".config/rstudio/prefs.json", ".jupyter/jupyter_server_config.json",
    ".ipython/profile_default/history.sqlite", ".kaggle/kaggle.json", ".huggingface/token",
    ".cache/huggingface/token", ".config/openai/key", ".config/anthropic/key", ".claude/.credentials.json",
    ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/goose/secrets.yaml",
    ".local/share/opencode/auth.json", ".vibe/.env", ".config/github-copilot/hosts.json",
    ".mozilla/firefox/p/logins.json", ".mozilla/firefox/p/key4.db", ".config/google-chrome/Default/Cookies",
    ".config/chromium/Default/Cookies", ".thunderbird/p/logins.json", ".env",
];

/// Tools that builds need, and settings without a secret.
const TOOLS: [&str; 4] =
    [".rustup/settings.toml", ".local/bin/tool", ".nvm/versions/node/v22/bin/node", ".gitconfig"];

/// Covers: RO-02, IS-14
#[test]
#[cfg(target_os = "linux")]
fn of_124_typical_credential_files_none_can_be_read_and_tools_can() {
    for (level, setting) in [("isolated", ""), ("restricted", "sandbox_max_abi: 100")] {
        none_can_be_read(level, setting);
    }
}

#[cfg(target_os = "linux")]
fn none_can_be_read(level: &str, setting: &str) {
    let liza = env!("CARGO_BIN_EXE_liza");
    let all: Vec<&str> = CREDENTIALS.iter().chain(&TOOLS).copied().collect();
    let try_all = |place: &str| {
        format!(
            r#"for file in {}; do if cat "$HOME/$file" > /dev/null 2>&1; then echo "{place}:$file"; fi; done"#,
            all.join(" ")
        )
    };
    let script = format!("{}\n\"{liza}\" check -- sh -c '{}'\nexit 1", try_all("session"), try_all("check"));
    let bench = Bench::new(&format!("sandbox: auto\n{setting}"), &[("c", &script)]);
    for file in &all {
        let path = bench.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !path.exists() {
            fs::write(path, "[user]\n\tname = P\n").unwrap();
        }
    }
    bench.project.add_task("t1");
    bench.agent(&["coder", "--cli", "c", "--once"]).wait();
    let said: String =
        bench.kept("agent-outputs").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(said.contains(&format!("[liza: confinement {level}")), "{said}");
    for place in ["session", "check"] {
        let read: Vec<&str> =
            said.lines().filter_map(|line| line.strip_prefix(place)?.strip_prefix(':')).collect();
        assert_eq!(read, TOOLS, "{place}\n{said}");
    }
}
