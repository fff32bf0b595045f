//! Parts of a board as text, in one pass and without a tree of values: the exploration writes millions of them.
//!
//! Times become their distance from now, commits their order of appearance, and agents may swap their names. The text is for hashes and for people who
//! compare two boards; it is not read back.

use std::fmt::{Display, Write};

use liza_core::model::Timestamp;
use serde::Serialize;
use serde::de::value::Error;
use serde::ser::{self, Serializer};

/// New names for agents: each with the one that it gets.
pub(crate) type Names = Vec<(String, String)>;

pub(crate) fn name_in<'t>(names: &'t Names, agent: &'t str) -> &'t str {
    names.iter().find(|(from, _)| from == agent).map_or(agent, |(_, to)| to)
}

/// In seconds, a year: no run gets so far.
const FAR: i64 = 365 * 86_400;

/// The text so far.
pub(crate) struct Form {
    text: String,
    commits: Vec<String>,
    now: Timestamp,
    /// What is over by more seconds than this is over.
    grace: i64,
    /// The names of agents, each with the one that it gets.
    names: Names,
}

impl Form {
    pub(crate) fn new(now: Timestamp, grace: i64, names: Names) -> Self {
        Self { text: String::with_capacity(2_048), commits: Vec::new(), now, grace, names }
    }

    /// The name that an agent gets.
    pub(crate) fn name<'t>(&'t self, agent: &'t str) -> &'t str {
        name_in(&self.names, agent)
    }

    fn rename_agent(&mut self, since: usize) {
        let renamed = self.names.iter().find(|(from, _)| *from == self.text[since..]);
        if let Some((_, to)) = renamed {
            self.text.truncate(since);
            self.text.push_str(to);
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    pub(crate) fn add(&mut self, name: &str, part: &impl Serialize) {
        self.add_without(name, part, &[]);
    }

    /// Adds a part without these fields of it.
    pub(crate) fn add_without(&mut self, name: &str, part: &impl Serialize, noise: &[&str]) {
        let _ = write!(self.text, "{name}: ");
        // Writing into a text does not fail.
        let _ = part.serialize(Part { form: self, noise });
        self.text.push('\n');
    }

    /// Replaces a commit at the end of the text since then, alone or at the end of a name.
    fn rename_commit(&mut self, since: usize) {
        let Some(at) = self.text.len().checked_sub(40).filter(|at| *at >= since) else { return };
        if !self.text.as_bytes()[at..].iter().all(u8::is_ascii_hexdigit) {
            return;
        }
        let known = self.commits.iter().position(|known| *known == self.text[at..]);
        let number = known.unwrap_or_else(|| {
            self.commits.push(self.text[at..].to_owned());
            self.commits.len() - 1
        });
        self.text.truncate(at);
        let _ = write!(self.text, "c{number}");
    }

    /// Replaces the time in the text since then by its distance from now.
    fn rename_time(&mut self, since: usize) {
        let Ok(time) = self.text[since..].trim_matches('"').parse::<Timestamp>() else { return };
        let distance = time.unix() - self.now.unix();
        self.text.truncate(since);
        match distance {
            // Beyond the grace of a lease and the grace of a failed merge nothing changes any more.
            _ if distance < -self.grace => self.text.push_str("over"),
            _ if distance > FAR => self.text.push_str("far"),
            _ => drop(write!(self.text, "{distance}")),
        }
    }
}

/// One value, written without some of its fields.
struct Part<'f, 'n> {
    form: &'f mut Form,
    noise: &'n [&'n str],
}

/// The items of a value.
struct Items<'f, 'n> {
    form: &'f mut Form,
    noise: &'n [&'n str],
}

impl<'f, 'n> Part<'f, 'n> {
    fn write(self, value: impl Display) -> Result<(), Error> {
        let _ = write!(self.form.text, "{value}");
        Ok(())
    }

    fn items(self) -> Result<Items<'f, 'n>, Error> {
        self.form.text.push('[');
        Ok(Items { form: self.form, noise: self.noise })
    }
}

impl Items<'_, '_> {
    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        value.serialize(Part { form: self.form, noise: &[] })?;
        self.form.text.push(',');
        Ok(())
    }

    fn field(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        if self.noise.contains(&key) {
            return Ok(());
        }
        self.form.text.push_str(key);
        self.form.text.push(':');
        self.item(value)
    }

    fn close(self) -> Result<(), Error> {
        self.form.text.push(']');
        Ok(())
    }
}

/// Declares the methods that write a value as it is.
macro_rules! plain {
    ($($method:ident: $type:ty,)+) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            self.write(value)
        })+
    };
}

impl<'f, 'n> Serializer for Part<'f, 'n> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'f, 'n>;
    type SerializeTuple = Items<'f, 'n>;
    type SerializeTupleStruct = Items<'f, 'n>;
    type SerializeTupleVariant = Items<'f, 'n>;
    type SerializeMap = Items<'f, 'n>;
    type SerializeStruct = Items<'f, 'n>;
    type SerializeStructVariant = Items<'f, 'n>;

    plain! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.collect_str(text)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.form.text.push('"');
        let since = self.form.text.len();
        let _ = write!(self.form.text, "{value}");
        self.form.rename_commit(since);
        self.form.rename_agent(since);
        self.form.text.push('"');
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.write('-')
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.write("()")
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Error> {
        self.write(name)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.write(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let since = self.form.text.len();
        value.serialize(Part { form: &mut *self.form, noise: self.noise })?;
        if name == Timestamp::SERDE_NAME {
            self.form.rename_time(since);
        }
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.form.text.push_str(variant);
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        self.items()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        self.items()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        self.items()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        self.form.text.push_str(variant);
        self.items()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        self.items()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Error> {
        self.items()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        self.form.text.push_str(variant);
        self.items()
    }
}

/// Declares the kinds of items that have no names.
macro_rules! unnamed {
    ($($kind:ident: $method:ident,)+) => {
        $(impl ser::$kind for Items<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })+
    };
}

/// Declares the kinds of items that have names.
macro_rules! named {
    ($($kind:ident,)+) => {
        $(impl ser::$kind for Items<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })+
    };
}

unnamed! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

named! {
    SerializeStruct,
    SerializeStructVariant,
}

impl ser::SerializeMap for Items<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(Part { form: self.form, noise: &[] })?;
        self.form.text.push(':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
