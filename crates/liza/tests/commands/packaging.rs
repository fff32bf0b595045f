//! The release archive: it is complete, its checksum is right, and it installs into an empty home.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::TestProject;

/// Covers: UI-13
#[test]
fn the_archive_installs_into_an_empty_home() {
    let project = TestProject::bare();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (output, home) = (project.home().join("package"), project.home().join("empty"));
    fs::create_dir(&home).unwrap();
    let package = source.join("packaging/package");
    let words = ["--program", env!("CARGO_BIN_EXE_liza"), "--output", output.to_str().unwrap()];
    let made = project.run(project.command(package).args(words).env("SOURCE_DATE_EPOCH", "0"));
    let archive = Path::new(made.ok().trim()).to_owned();
    let name = archive.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("liza-") && name.ends_with(".tar.gz"), "{name}");
    let sum = format!("{name}.sha256");
    project.run(project.command("sha256sum").args(["-c", &sum]).current_dir(&output)).ok();

    project.run(project.command("tar").arg("xzf").arg(&archive).current_dir(&output)).ok();
    let folder = output.join(name.trim_end_matches(".tar.gz"));
    assert!(folder.join("LICENSE").is_file());
    assert!(folder.join("share/doc/liza/packaging/apparmor").is_file());
    check_links(&folder);
    let install = folder.join("install.sh");
    let help = project.run(project.command("sh").arg(&install).arg("--help").env("HOME", &home));
    assert!(
        help.ok().starts_with("usage: sh install.sh [PREFIX]") && !home.join(".local").exists(),
        "{help:#?}"
    );
    let said = project.run(project.command("sh").arg(&install).env("HOME", &home)).ok().to_owned();
    let line = format!("export PATH=\"{}/.local/bin:$PATH\"", home.display());
    assert!(said.contains("is not in your PATH") && said.contains(&line), "{said}");
    let other = project.home().join("other");
    let said = project.run(project.command("sh").arg(&install).env("HOME", &home).env("PREFIX", &other));
    assert!(said.ok().contains(&format!("liza is installed in {}/bin", other.display())));
    assert!(other.join("bin/liza").is_file());
    let installed = home.join(".local");
    let version =
        project.run(project.command(installed.join("bin/liza")).arg("--version").env("HOME", &home));
    assert_eq!(version.ok(), format!("liza {}\n", env!("CARGO_PKG_VERSION")));
    let read = |path: &str| fs::read_to_string(installed.join("share").join(path)).unwrap();
    assert!(read("doc/liza/CHANGELOG.md").contains("## Unreleased"));
    assert!(read("man/man1/liza.1").contains(".TH liza"));
    assert!(read("man/man1/liza-run.1").contains("team"));
    assert!(read("bash-completion/completions/liza").contains("complete"));
    assert!(read("zsh/site-functions/_liza").starts_with("#compdef liza"));
    assert!(read("fish/vendor_completions.d/liza.fish").contains("complete -c liza"));
}

/// Every link between the pages of a folder leads to a file that is there.
fn check_links(folder: &Path) {
    let pages = pages_in(folder);
    assert!(pages.len() > 30, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let files = targets.map(|target| target.split('#').next().unwrap());
        for file in files.filter(|file| !file.is_empty() && !file.contains("://")) {
            let target = page.parent().unwrap().join(file);
            assert!(target.exists(), "{} links to {file}", page.display());
        }
    }
}

/// All pages below a folder.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => pages_in(&path),
        false => {
            Some(path).filter(|path| path.extension().is_some_and(|end| end == "md")).into_iter().collect()
        }
    };
    entries.flat_map(below).collect()
}

/// Covers: UI-13
#[test]
fn an_unknown_option_of_the_packager_is_refused() {
    let project = TestProject::bare();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/package");
    let run = project.run(project.command(package).arg("--fast"));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("unknown option --fast"), "{run:#?}");
}
