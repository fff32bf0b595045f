//! Sets a value at a path of a text. `checked_edit.rs` decides whether the result is valid and allowed.

use liza_core::model::{Timestamp, Value};

use crate::codec::{self, StateView, fault_count};
use crate::document::{EditPlan, apply, plain_value};
use crate::document::{PathError, ValuePath};
use crate::error::StoreError;

/// The reading of a value by `lock write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSyntax {
    /// A known field takes the type of its schema, an unknown one takes text.
    BySchema,
    Yaml,
}

/// Sets the value in the interpretation that the schema accepts best.
pub(crate) fn with_value(
    view: &StateView<'_>,
    path: &ValuePath,
    value: &str,
    syntax: ValueSyntax,
) -> Result<(String, bool), StoreError> {
    let faults = |text: &str| {
        let mut view = StateView::full(view.path, text)?;
        Ok::<_, StoreError>(fault_count(&view.state()?) + view.config_faults())
    };
    let mut best: Option<(usize, (String, bool))> = None;
    for candidate in interpretations(value, syntax)? {
        let measure = |value: &Value| Ok(Some(faults(&with_path_set(view, path, value)?.0)?));
        let candidate = as_field_type(candidate, syntax, &measure)?;
        let text = with_path_set(view, path, &candidate)?;
        let found = faults(&text.0)?;
        if best.as_ref().is_none_or(|(fewest, _)| found < *fewest) {
            best = Some((found, text));
        }
    }
    best.map(|(_, text)| text).ok_or_else(|| no_match(path))
}

/// Gives a value the form of its field: one that takes only a time gets the time in our own form. `faults`
/// counts the faults of the file with a value.
pub(crate) fn as_field_type(
    candidate: Value,
    syntax: ValueSyntax,
    faults: &dyn Fn(&Value) -> Result<Option<usize>, StoreError>,
) -> Result<Value, StoreError> {
    match candidate.as_text().and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) if syntax == ValueSyntax::BySchema => {
            let is_time = faults(&Value::from("no time"))? > faults(&candidate)?;
            Ok(if is_time { Value::Time(time) } else { candidate })
        }
        Some(_) | None => Ok(candidate),
    }
}

/// The possible interpretations of the value, most likely first.
pub(crate) fn interpretations(value: &str, syntax: ValueSyntax) -> Result<Vec<Value>, StoreError> {
    let parsed = crate::yaml::parse(value).map(|(node, _)| plain_value(&node));
    match (syntax, parsed) {
        (ValueSyntax::Yaml, Ok(parsed)) => Ok(vec![parsed]),
        (ValueSyntax::Yaml, Err(error)) => {
            Err(PathError::NotYaml { value: value.to_owned(), source: error }.into())
        }
        (ValueSyntax::BySchema, Ok(parsed)) if parsed != Value::from(value) => {
            Ok(vec![Value::from(value), parsed])
        }
        (ValueSyntax::BySchema, _) => Ok(vec![Value::from(value)]),
    }
}

/// Sets the value; true if the whole file had to be rewritten.
fn with_path_set(
    view: &StateView<'_>,
    path: &ValuePath,
    value: &Value,
) -> Result<(String, bool), StoreError> {
    let tree = view.tree.as_ref().ok_or_else(|| no_match(path))?;
    let old = plain_value(tree);
    let mut new = old.clone();
    if path.set(&mut new, value) == 0 {
        return Err(no_match(path));
    }
    let (Value::Map(old), Value::Map(new)) = (&old, &new) else {
        return Err(no_match(path));
    };
    let mut plan = EditPlan::new(view.text);
    let planned = plan.change_map(&view.blocks, tree, 0, (old, new), &[]);
    let finished = planned.and_then(|()| plan.finish(|range| codec::part_around(view, range)));
    let spliced = finished.and_then(|mut edits| apply(view.text, &mut edits));
    Ok(spliced.map_or_else(|_| (crate::yaml::document(new), true), |text| (text, false)))
}

fn no_match(path: &ValuePath) -> StoreError {
    PathError::NoMatch { path: path.to_string() }.into()
}
