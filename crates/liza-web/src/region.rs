//! The parts of a page that follow the blackboard: regions with items, each of which is sent again only when it changes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use liza_core::text::visible;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemTag {
    Li,
    Div,
}

impl ItemTag {
    fn name(self) -> &'static str {
        match self {
            ItemTag::Li => "li",
            ItemTag::Div => "div",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    id: String,
    version: String,
    html: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    id: &'static str,
    tag: ItemTag,
    items: Vec<Item>,
}

/// A number that names a text.
pub(crate) fn hash(parts: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Region {
    pub(crate) fn new(id: &'static str, tag: ItemTag) -> Self {
        Self { id, tag, items: Vec::new() }
    }

    /// A region that is one item.
    pub(crate) fn single(id: &'static str, body: &Markup) -> Self {
        let mut region = Self::new(id, ItemTag::Div);
        region.push(format!("{id}-0"), "", body);
        region
    }

    /// The region, with a sentence in the place of items if there are none.
    pub(crate) fn or(mut self, sentence: &Markup) -> Self {
        if self.items.is_empty() {
            self.push(format!("{}-nothing", self.id), "nothing-here", sentence);
        }
        self
    }

    /// Adds an item; its ID must be unique on the page.
    pub(crate) fn push(&mut self, id: String, class: &str, body: &Markup) {
        // Names of authors, diffs and texts are agents' words.
        let body = visible(&body.0);
        let version = hash(&[class, &body]);
        let tag = self.tag.name();
        let class = if class.is_empty() { None } else { Some(class) };
        let open = html! { (PreEscaped(format!("<{tag} "))) };
        let attributes = html! { i id=(id) class=[class] data-v=(version) {} }.0;
        // The attributes are written, and so escaped, by the same code as everything else.
        let attributes = attributes.trim_start_matches("<i ").trim_end_matches("></i>").to_owned();
        let html = format!("{}{attributes}>{body}</{tag}>", open.0);
        self.items.push(Item { id, version, html });
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Regions(Vec<Region>);

/// The change of a region.
#[derive(Serialize)]
struct Patch<'a> {
    id: &'a str,
    /// The items in their order, each with its version.
    order: Vec<(&'a str, &'a str)>,
    /// The new or changed ones.
    html: BTreeMap<&'a str, &'a str>,
}

impl Regions {
    pub(crate) fn new(regions: Vec<Region>) -> Self {
        Self(regions)
    }

    /// The content of a region, to be put into its container.
    pub(crate) fn inner(&self, id: &str) -> Markup {
        let region = self.0.iter().find(|region| region.id == id);
        let items = region.map(|region| region.items.as_slice()).unwrap_or_default();
        PreEscaped(items.iter().map(|item| item.html.as_str()).collect())
    }

    /// Everything, as an event of the stream.
    pub(crate) fn whole(&self) -> String {
        self.changes_since(&Regions::default()).unwrap_or_default()
    }

    /// The difference from the earlier state, as an event of the stream; none if nothing differs.
    pub(crate) fn changes_since(&self, earlier: &Regions) -> Option<String> {
        let patches: Vec<Patch<'_>> = self
            .0
            .iter()
            .filter_map(|region| {
                let old = earlier.0.iter().find(|old| old.id == region.id);
                (old != Some(region)).then(|| patch(region, old))
            })
            .collect();
        (!patches.is_empty()).then(|| format!("event: patch\ndata: {}\n\n", json!(patches)))
    }
}

fn patch<'a>(region: &'a Region, old: Option<&Region>) -> Patch<'a> {
    let known: BTreeMap<&str, &str> = old
        .map(|old| old.items.iter().map(|item| (item.id.as_str(), item.version.as_str())).collect())
        .unwrap_or_default();
    let changed =
        region.items.iter().filter(|item| known.get(item.id.as_str()) != Some(&item.version.as_str()));
    Patch {
        id: region.id,
        order: region.items.iter().map(|item| (item.id.as_str(), item.version.as_str())).collect(),
        html: changed.map(|item| (item.id.as_str(), item.html.as_str())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(texts: &[(&str, &str)]) -> Regions {
        let mut region = Region::new("tasks", ItemTag::Li);
        for (id, text) in texts {
            region.push((*id).to_owned(), "card", &html! { (text) });
        }
        Regions::new(vec![region])
    }

    /// Covers: UI-02
    #[test]
    fn only_what_changed_is_sent_and_text_stays_text() {
        let hidden = regions(&[("a", "if a\u{200b}dmin\u{202e}")]);
        assert!(
            hidden.inner("tasks").0.contains("if a\\u{200b}dmin\\u{202e}"),
            "{:?}",
            hidden.inner("tasks")
        );
        let before = regions(&[("a", "one"), ("b", "<script>alert(1)</script>")]);
        assert!(before.inner("tasks").0.contains("&lt;script&gt;"), "{:?}", before.inner("tasks"));
        assert!(before.inner("tasks").0.starts_with("<li id=\"a\" class=\"card\" data-v=\""));
        assert_eq!(before.changes_since(&before.clone()), None);
        let after = regions(&[("b", "<script>alert(1)</script>"), ("c", "three"), ("a", "two")]);
        let event = after.changes_since(&before).unwrap();
        assert!(event.starts_with("event: patch\ndata: ") && event.ends_with("\n\n"), "{event}");
        let data: serde_json::Value =
            serde_json::from_str(event.trim_start_matches("event: patch\ndata: ")).unwrap();
        let changed: Vec<&String> = data[0]["html"].as_object().unwrap().keys().collect();
        assert_eq!(changed, ["a", "c"]);
        let order: Vec<&str> =
            data[0]["order"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
        assert_eq!(order, ["b", "c", "a"]);
        assert!(after.whole().contains("three") && after.whole().contains("two"));
    }
}
