//! Git's facts about a submission, counted by the real rule from the text of the corpus.

use liza_core::model::{FactKind, GateSettings, WorkFacts};
use liza_core::rules::work_facts::{FileDelta, KnownFiles, work_facts};
use liza_ids::gate::{GatePatterns, Protection};

use crate::mutants::Material;
use crate::work::{Content, Flaw};

/// The kinds of facts about this content that git shows to everybody, whatever the settings of an arm protect.
pub(crate) fn kinds(material: &Material, content: &Content) -> Vec<FactKind> {
    let facts = facts_of(material, content, &GateSettings::default());
    FactKind::ALL.iter().copied().filter(|kind| facts.count(*kind) > 0).collect()
}

/// The file that the gate runs.
pub(crate) const GATE_FILE: &str = "scripts/test.sh";
const SOURCE: &str = "src/lib";

/// The facts about the change that this content is.
pub(crate) fn facts_of(material: &Material, content: &Content, gate: &GateSettings) -> WorkFacts {
    let lines = material.task.patch.lines().count();
    let mut files = vec![FileDelta { path: SOURCE.to_owned(), added: lines, ..FileDelta::default() }];
    match content.defect.map(|defect| defect.flaw) {
        Some(flaw @ (Flaw::TestWeakened | Flaw::TestDeleted | Flaw::TestSkipped)) => {
            files.push(changed_tests(material, flaw));
        }
        Some(Flaw::Gate) => files.push(other_file(GATE_FILE)),
        Some(Flaw::Scope) => files.push(other_file("elsewhere.txt")),
        Some(Flaw::Mutant(_) | Flaw::Half | Flaw::NotCommitted | Flaw::Clash) | None => {}
    }
    let patterns = GatePatterns::new(gate);
    let is_protected = |path: &&String| patterns.protection(path) >= Protection::Watched;
    let protected = files.iter().map(|file| &file.path).filter(is_protected).cloned().collect();
    let known = KnownFiles { protected, planned: vec![SOURCE.to_owned()], high_impact: Vec::new() };
    work_facts(&files, &known)
}

fn other_file(path: &str) -> FileDelta {
    FileDelta { path: path.to_owned(), added: 1, ..FileDelta::default() }
}

/// The visible tests with the first one changed.
fn changed_tests(material: &Material, flaw: Flaw) -> FileDelta {
    let (language, tests) = (material.task.language, material.task.visible_tests());
    let (first, rest) = tests.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let replaced = match flaw {
        Flaw::TestDeleted => String::new(),
        Flaw::TestSkipped => language.skipped(first),
        Flaw::Mutant(_)
        | Flaw::TestWeakened
        | Flaw::Gate
        | Flaw::Half
        | Flaw::NotCommitted
        | Flaw::Scope
        | Flaw::Clash => language.weakened(),
    };
    let new = format!("{replaced}{}", rest.concat());
    let path = language.test_file().to_owned();
    FileDelta {
        path,
        added: 1,
        removed: 1,
        old: Some(tests.concat()),
        new: Some(new),
        ..FileDelta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::material;
    use crate::work::Defect;

    /// Covers: TR-02
    #[test]
    fn the_real_rule_counts_changed_tests_in_all_four_languages() {
        let cases = [
            (Flaw::TestWeakened, FactKind::TestsChanged),
            (Flaw::TestDeleted, FactKind::TestsDeleted),
            (Flaw::TestSkipped, FactKind::TestsSkipped),
            (Flaw::Gate, FactKind::Protected),
            (Flaw::Scope, FactKind::Unplanned),
        ];
        for material in material() {
            for (flaw, kind) in cases {
                let defect = Some(Defect { flaw, is_visible: false, blind: [false; 2] });
                let content = Content { defect, has_more_tests: false };
                let facts = facts_of(&material, &content, &GateSettings::default());
                assert_eq!(
                    facts.count(kind),
                    1,
                    "{flaw:?} in {}/{}",
                    material.task.language,
                    material.task.name
                );
            }
        }
    }
}
