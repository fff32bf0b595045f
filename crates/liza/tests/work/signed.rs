//! `liza verify --signers`: merges that a person's ssh key has signed, and what a signature does not show.

use std::fs;
use std::path::{Path, PathBuf};

use liza_receipts::{LIMITS, SIGNED_LIMITS};
use serde_json::Value;

use crate::fixture::*;
use crate::support::{Run, TestProject};

/// A new key without a passphrase; returns its file.
fn new_key(project: &TestProject, name: &str) -> PathBuf {
    let file = project.home().join(name);
    let mut program = project.command("ssh-keygen");
    program.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&file);
    assert!(program.status().unwrap().success(), "ssh-keygen is installed");
    file
}

/// From now on this key signs what the person's git commits.
fn sign_with(project: &TestProject, key: &Path) {
    for (name, value) in
        [("gpg.format", "ssh"), ("user.signingkey", key.to_str().unwrap()), ("commit.gpgsign", "true")]
    {
        project.git(&["config", "--global", name, value]);
    }
}

fn signers(project: &TestProject, place: &Path, key: &Path) -> PathBuf {
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(place, format!("me@example.com {public}")).unwrap();
    project.git(&["--version"]);
    place.to_owned()
}

fn verify(project: &TestProject, file: &Path) -> Run {
    project.liza(&["verify", "--signers", file.to_str().unwrap(), "--json"])
}

fn commits(run: &Run) -> Vec<(String, String)> {
    let text = |commit: &Value, key: &str| commit[key].as_str().unwrap_or_default().to_owned();
    let result = run.json()["result"].clone();
    let listed = result["commits"].as_array().unwrap_or_else(|| panic!("{run:?}")).clone();
    let listed = listed.iter().filter(|commit| commit["class"] != "BEFORE RECEIPTS");
    listed.map(|commit| (text(commit, "class"), text(commit, "signed_by") + &text(commit, "why"))).collect()
}

/// Covers: JU-05
#[test]
fn needs_ssh_keygen_a_signed_merge_is_signed_by_the_persons_key() {
    let project = team();
    let (mine, others) = (new_key(&project, "mine"), new_key(&project, "others"));
    let known = signers(&project, &project.home().join("signers"), &mine);
    approved(&project, "plain");
    merge(&project, "plain").ok();
    sign_with(&project, &others);
    approved(&project, "theirs");
    merge(&project, "theirs").ok();
    sign_with(&project, &mine);
    approved(&project, "mine");
    merge(&project, "mine").ok();

    let run = verify(&project, &known);
    let found = commits(&run);
    let [(first, by), (second, why), (third, none)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!([first.as_str(), second, third], ["SIGNED", "CONSISTENT", "CONSISTENT"], "{found:?}");
    assert!(by.starts_with("me@example.com, SHA256:"), "{by}");
    assert!(why.starts_with("signed by a key that the file of signers does not name, SHA256:"), "{why}");
    assert_eq!(none, "");
    let result = run.result();
    assert_eq!(
        (&result["signed"], &result["consistent"]),
        (&false.into(), &true.into()),
        "not all are signed"
    );
    let text = project.liza(&["verify", "--signers", known.to_str().unwrap()]);
    for words in
        ["SIGNED    ".to_owned(), "(by me@example.com, SHA256:".into(), LIMITS.into(), SIGNED_LIMITS.into()]
    {
        assert!(text.ok().contains(&words), "{words}: {}", text.stdout);
    }
    // Alone it is signed, and no more is said of it.
    let alone = project.liza(&[
        "verify",
        "integration^..integration",
        "--signers",
        known.to_str().unwrap(),
        "--json",
    ]);
    let alone = alone.result();
    assert_eq!((&alone["signed"], alone["note"].as_str()), (&true.into(), Some(SIGNED_LIMITS)));
    // Without the file, nobody is believed.
    assert!(project.liza(&["verify", "--json"]).result()["classes"].get("SIGNED").is_none());

    // The same signature on another message, with the same receipt.
    let commit = project.git(&["cat-file", "commit", "integration"]);
    fs::write(project.home().join("commit"), format!("{}\n", commit.replacen("Merge mine", "Merge mime", 1)))
        .unwrap();
    let path = project.home().join("commit").display().to_string();
    let forged = project.git(&["hash-object", "-t", "commit", "-w", &path]);
    let forged = project.liza(&["verify", &forged, "--signers", known.to_str().unwrap(), "--json"]);
    assert_eq!(forged.code, 4);
    let (class, why) = commits(&forged).remove(0);
    assert!(class == "CONTRADICTED" && why.contains("its signature is of other content"), "{class} {why}");
}

/// Covers: JU-05
#[test]
fn needs_ssh_keygen_a_clone_vouches_neither_with_its_own_keys_nor_with_its_own_programs() {
    let project = team();
    let theirs = new_key(&project, "theirs");
    sign_with(&project, &theirs);
    approved(&project, "one");
    merge(&project, "one").ok();
    let inside = signers(&project, &project.root.join("signers"), &theirs);
    let error = verify(&project, &inside).refused(1, "bad_signers");
    assert!(error["message"].as_str().unwrap().contains("a part of the clone"), "{error}");
    signers(&project, &project.root.join(".git/signers"), &theirs);
    verify(&project, &project.root.join(".git/signers")).refused(1, "bad_signers");
    let outside = signers(&project, &project.home().join("outside"), &theirs);
    std::os::unix::fs::symlink(&outside, project.root.join("link")).unwrap();
    verify(&project, &project.root.join("link")).refused(1, "bad_signers");
    verify(&project, &project.home().join("missing")).refused(1, "bad_signers");

    // A clone whose settings name a program that believes everything, and keys of its own.
    let empty = project.home().join("empty");
    fs::write(&empty, "").unwrap();
    let marker = project.home().join("ran");
    let evil = project.home().join("evil");
    script(
        &evil,
        &format!(
            "touch {}; echo 'Good \"git\" signature for me@example.com with ED25519 key SHA256:x'",
            marker.display()
        ),
    );
    let clone = project.home().join("clone");
    project.git(&["clone", "-q", project.root.to_str().unwrap(), clone.to_str().unwrap()]);
    project
        .git_at(&clone, &["fetch", "-q", "origin", "refs/liza/receipts:refs/liza/receipts", "integration"]);
    for (name, value) in
        [("gpg.ssh.program", &evil), ("gpg.program", &evil), ("gpg.ssh.allowedSignersFile", &outside)]
    {
        project.git_at(&clone, &["config", name, value.to_str().unwrap()]);
    }
    let mut program = project.program();
    let words = ["verify", "origin/integration", "--signers", empty.to_str().unwrap(), "--json"];
    let run = project.run(program.args(words).current_dir(&clone));
    let (class, why) = commits(&run).remove(0);
    assert!(class == "CONSISTENT" && why.contains("does not name"), "{class} {why}");
    assert!(!marker.exists(), "the clone's program ran");
}
