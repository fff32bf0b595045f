//! The home folder of the person: sessions and code under test read the tools in it, and no credential.

use std::fs;

use crate::environment::{UNDER_TEST, found, looking_around, run_with, said};

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

/// Keys, tokens and another project beside the code of tools: settings of each node, Python and environment too.
const BESIDE_TOOLS: [&str; 19] = [
    ".nvm/versions/node/v22/etc/npmrc",
    ".local/share/fnm/node-versions/v22/installation/etc/npmrc",
    ".local/share/mise/installs/node/22/etc/npmrc",
    ".volta/tools/image/node/22/etc/npmrc",
    ".asdf/installs/nodejs/22/.npm/etc/npmrc",
    ".pyenv/versions/3.13/pip.conf",
    ".pyenv/versions/3.13/envs/shop/pip.conf",
    ".local/share/uv/tools/black/pip.conf",
    ".sdkman/candidates/gradle/9/gradle.properties",
    "venv/pip.conf",
    ".local/share/uv/credentials/credentials.toml",
    ".dotnet/corefx/cryptography/x509stores/my/key.pfx",
    ".gradle/caches/9.0/cc-keystore/gradle.keystore",
    ".opam/plugins/opam-publish/me.token",
    ".local/state/history",
    "miniconda3/.condarc",
    "miniconda3/condarc.d/token.yml",
    "go/src/example.com/other/.env",
    "sdk/other/.env",
];

/// Tools that builds need, and settings without a secret.
const TOOLS: [&str; 13] = [
    ".rustup/settings.toml",
    ".local/bin/tool",
    ".nvm/versions/node/v22/bin/node",
    ".nvm/versions/node/v22/lib/node_modules/npm/npmrc",
    ".pyenv/versions/3.13/envs/shop/pyvenv.cfg",
    "venv/bin/python",
    ".gitconfig",
    ".local/share/uv/python/3.13/bin/python",
    ".dotnet/sdk/9.0/tool.dll",
    ".gradle/caches/modules-2/library.jar",
    "miniconda3/conda-meta/python.json",
    "go/pkg/mod/cache/download/list",
    "sdk/go1.24/bin/go",
];

/// Covers: RO-02, IS-14
#[test]
#[cfg(target_os = "linux")]
fn of_124_typical_credential_files_none_can_be_read_and_tools_can() {
    // The folder of an agent program belongs to it only if it is not one of many programs.
    for (level, setting, folder) in [
        ("isolated", "", ".local/bin"),
        ("restricted", "sandbox_max_abi: 100", ".local/bin"),
        ("isolated", "", "bin"),
    ] {
        none_can_be_read(level, setting, folder);
    }
}

#[cfg(target_os = "linux")]
fn none_can_be_read(level: &str, setting: &str, folder: &str) {
    let all: Vec<&str> = CREDENTIALS.iter().chain(&BESIDE_TOOLS).chain(&TOOLS).copied().collect();
    let read = |place: &str| {
        format!(
            r#"echo "{place}:ran"; for file in {}; do if cat "$HOME/$file" > /dev/null 2>&1; then echo "{place}:$file"; fi; done"#,
            all.join(" ")
        )
    };
    let bench = looking_around(&format!("sandbox: auto\n{setting}"), ["c", "r"], read);
    let home = |name: &str| bench.home().join(name);
    fs::create_dir_all(home(folder)).unwrap();
    let mut providers = Vec::new();
    for name in ["c", "r"] {
        let program = home(folder).join(name);
        fs::rename(home(&format!("{name}.sh")), &program).unwrap();
        providers.push(format!("{name}: {{program: {}, args: [\"{{task}}\"]}}", program.display()));
    }
    bench.project.set_config("providers", &format!("{{{}}}", providers.join(", ")));
    for file in &all {
        let path = home(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !path.exists() {
            fs::write(path, "[user]\n\tname = P\n").unwrap();
        }
    }
    // Typical ones of shells, which name folders with more than tools.
    let variables = [
        ("NPM_CONFIG_PREFIX", ".local"),
        ("GOPATH", "go"),
        ("DOTNET_ROOT", ".dotnet"),
        ("VIRTUAL_ENV", "venv"),
    ];
    let variables = variables.map(|(name, folder)| (name, home(folder).display().to_string()));
    run_with(&bench, "coder", "c", &variables);
    run_with(&bench, "code-reviewer", "r", &variables);
    let said = said(&bench);
    assert!(said.contains(&format!("[liza: confinement {level}")), "{said}");
    for place in ["coder", "reviewer"].into_iter().chain(UNDER_TEST) {
        assert_eq!(found(&said, place, &all), TOOLS, "{level} {folder}: {place}\n{said}");
    }
    assert_eq!(bench.status("t1").to_string(), "MERGED", "{said}");
}
