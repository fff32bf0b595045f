//! The release archive: it is complete, its checksum is right, and it installs into an empty home.

use std::fs;
use std::path::Path;

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
    for file in ["README.md", "LICENSE", "CHANGELOG.md"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let install = folder.join("install.sh");
    let said = project.run(project.command("sh").arg(&install).env("HOME", &home)).ok().to_owned();
    assert!(said.contains("is not in your PATH"), "{said}");
    let installed = home.join(".local");
    let version =
        project.run(project.command(installed.join("bin/liza")).arg("--version").env("HOME", &home));
    assert_eq!(version.ok(), format!("liza {}\n", env!("CARGO_PKG_VERSION")));
    let read = |path: &str| fs::read_to_string(installed.join("share").join(path)).unwrap();
    assert!(read("man/man1/liza.1").contains(".TH liza"));
    assert!(read("man/man1/liza-run.1").contains("team"));
    assert!(read("bash-completion/completions/liza").contains("complete"));
    assert!(read("zsh/site-functions/_liza").starts_with("#compdef liza"));
    assert!(read("fish/vendor_completions.d/liza.fish").contains("complete -c liza"));
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
