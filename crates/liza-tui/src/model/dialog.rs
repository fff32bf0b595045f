//! The questions before an action: texts to type, or a confirmation.

use liza_core::rules::spending::Spending;
use liza_status::action::{Action, ActionField};

use crate::model::input_field::InputField;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialog {
    pub action: Action,
    /// The texts to type; if there is none, `y` confirms.
    pub fields: Vec<InputField>,
    /// The field that has the cursor.
    pub current: usize,
}

impl Dialog {
    /// The dialog of an action; `None` if it can run at once.
    pub(crate) fn of(action: &Action, budgets: &[Spending]) -> Option<Self> {
        let field = |field: ActionField| InputField::of(field, action.label(&field, budgets));
        let fields: Vec<InputField> = action.fields.iter().copied().map(field).collect();
        let asks = !fields.is_empty() || action.warning.is_some();
        asks.then(|| Self { action: action.clone(), fields, current: 0 })
    }

    /// The command with what has been typed so far.
    pub(crate) fn words(&self) -> Vec<String> {
        let texts: Vec<&str> = self.fields.iter().map(|field| field.text.as_str()).collect();
        self.action.words(&texts)
    }

    pub(crate) fn field(&mut self) -> Option<&mut InputField> {
        self.fields.get_mut(self.current)
    }
}
