//! The mutants of a source file: small changes that keep the type of what they change.
//!
//! Left out, because no switch fits there: `const fn`, constants, patterns, arguments of macros, attributes and tests.

#![allow(clippy::wildcard_enum_match_arm, reason = "the syntax of Rust grows, and most of it has no mutants")]

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Lit, ReturnType, Signature, Stmt, UnOp};

/// The way a switch is put around the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One expression in place of another.
    Expression,
    /// A statement that is left out.
    Statement,
    /// A function that returns a value at once.
    Body,
}

/// One change of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    pub form: Form,
    /// Bytes of the file.
    pub range: Range<usize>,
    /// From 1.
    pub line: usize,
    /// With the type that it belongs to.
    pub function: String,
    /// The class of the change, for the figures.
    pub kind: &'static str,
    pub old: String,
    pub new: String,
}

/// Methods that are exchanged: the type remains.
const EXCHANGED: [(&str, &str); 16] = [
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("is_ok", "is_err"),
    ("is_err", "is_ok"),
    ("is_some_and", "is_none_or"),
    ("is_none_or", "is_some_and"),
    ("any", "all"),
    ("all", "any"),
    ("min", "max"),
    ("max", "min"),
    ("min_by_key", "max_by_key"),
    ("max_by_key", "min_by_key"),
    ("first", "last"),
    ("last", "first"),
    ("saturating_add", "saturating_sub"),
    ("saturating_sub", "saturating_add"),
];

/// Questions that are answered the other way round.
const NEGATED: [&str; 5] = ["is_empty", "contains", "contains_key", "starts_with", "ends_with"];

/// Alternatives that are left out.
const LEFT_OUT: [&str; 3] = ["or", "or_else", "filter"];

/// The mutants of a file, in the order of its text.
pub fn mutants(text: &str) -> syn::Result<Vec<Mutant>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, owner: Vec::new(), exits: Vec::new(), found: Vec::new() };
    finder.visit_file(&file);
    let mut found = finder.found;
    found.sort_by_key(|mutant| (mutant.range.start, std::cmp::Reverse(mutant.range.end)));
    Ok(found)
}

struct Finder<'t> {
    text: &'t str,
    /// The type and the function around.
    owner: Vec<String>,
    /// The starts of the statements by which a `let … else` leaves the function: they cannot be left out.
    exits: Vec<usize>,
    found: Vec<Mutant>,
}

impl Finder<'_> {
    fn source(&self, node: &impl Spanned) -> String {
        self.text[node.span().byte_range()].to_owned()
    }

    fn add(&mut self, form: Form, span: Span, kind: &'static str, new: String) {
        let range = span.byte_range();
        let old = self.text[range.clone()].to_owned();
        self.push(Mutant { form, range, line: span.start().line, function: String::new(), kind, old, new });
    }

    fn push(&mut self, mutant: Mutant) {
        // Outside of functions there are constants only.
        if !self.owner.is_empty() && mutant.old.trim() != mutant.new.trim() {
            self.found.push(Mutant { function: self.owner.join("::"), ..mutant });
        }
    }

    fn replace(&mut self, node: &impl Spanned, kind: &'static str, new: impl Into<String>) {
        self.add(Form::Expression, node.span(), kind, new.into());
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if signature.constness.is_some() || is_test(attributes) {
            return;
        }
        self.owner.push(signature.ident.to_string());
        for value in self.values(&signature.output, block) {
            let start = block.brace_token.span.open().byte_range().end;
            let line = signature.ident.span().start().line;
            let old = "{ … }".to_owned();
            let (kind, function) = ("body of a function", String::new());
            self.push(Mutant {
                form: Form::Body,
                range: start..start,
                line,
                function,
                kind,
                old,
                new: value,
            });
        }
        visit::visit_block(self, block);
        self.owner.pop();
    }

    /// The values that a function may return instead, unless its body is such a value or becomes one by another mutant.
    fn values(&self, output: &ReturnType, block: &Block) -> Vec<String> {
        let body = match block.stmts.as_slice() {
            [] => return Vec::new(),
            [Stmt::Expr(body, None)] => self.source(body),
            _ => String::new(),
        };
        let ReturnType::Type(_, output) = output else { return vec![String::new()] };
        let output: String = self.source(output).split_whitespace().collect();
        let is = |start: &str| output.starts_with(start);
        let values: &[&str] = match output.as_str() {
            "bool" => &["true", "false"],
            "u32" | "u64" | "usize" => &["0", "1"],
            "String" => &["String::new()"],
            "Seconds" => &["Seconds(0)"],
            _ if is("Result<(),") => &["Ok(())"],
            _ if is("Option<") => &["None"],
            _ if is("Vec<") => &["Vec::new()"],
            _ => &[],
        };
        let is_simple = ["Some(", "Vec::new()", "String::new()", "Ok(())", "None", "true", "false"]
            .iter()
            .any(|start| body.starts_with(start) && !body.contains('.'));
        if is_simple { Vec::new() } else { values.iter().map(|value| (*value).to_owned()).collect() }
    }

    fn condition(&mut self, condition: &Expr, kind: &'static str) {
        if !has_let(condition) {
            self.replace(condition, kind, "true");
            self.replace(condition, kind, "false");
        }
    }

    fn binary(&mut self, expr: &syn::ExprBinary) {
        let (kind, new) = match expr.op {
            BinOp::Eq(_) => ("comparison", "!="),
            BinOp::Ne(_) => ("comparison", "=="),
            BinOp::Lt(_) => ("comparison", "<="),
            BinOp::Le(_) => ("comparison", "<"),
            BinOp::Gt(_) => ("comparison", ">="),
            BinOp::Ge(_) => ("comparison", ">"),
            BinOp::And(_) if !has_let(&expr.left) && !has_let(&expr.right) => ("and, or", "||"),
            BinOp::Or(_) => ("and, or", "&&"),
            BinOp::Add(_) => ("arithmetic", "-"),
            BinOp::Sub(_) => ("arithmetic", "+"),
            BinOp::Mul(_) => ("arithmetic", "+"),
            BinOp::AddAssign(_) => ("arithmetic", "-="),
            BinOp::SubAssign(_) => ("arithmetic", "+="),
            _ => return,
        };
        let (left, right) = (self.source(&expr.left), self.source(&expr.right));
        let is_simple = |side: &str| side.chars().all(|c| c.is_alphanumeric() || "_.:()&*".contains(c));
        let side = |side: String| if is_simple(&side) { side } else { format!("({side})") };
        // What is assigned to is no value, so it gets no parentheses.
        let left =
            if new.len() == 2 && new.ends_with('=') && kind == "arithmetic" { left } else { side(left) };
        self.replace(expr, kind, format!("{left} {new} {}", side(right)));
    }

    fn method(&mut self, call: &syn::ExprMethodCall) {
        let name = call.method.to_string();
        let start = call.span().byte_range().start;
        let at = call.method.span().byte_range();
        let whole = self.source(call);
        if let Some((_, other)) = EXCHANGED.iter().find(|(one, _)| *one == name) {
            let new = format!("{}{other}{}", &whole[..at.start - start], &whole[at.end - start..]);
            self.replace(call, "method", new);
        }
        if NEGATED.contains(&name.as_str()) {
            self.replace(call, "negation", format!("!{whole}"));
        }
        if LEFT_OUT.contains(&name.as_str()) {
            let receiver = self.source(&call.receiver);
            self.replace(call, "call left out", receiver);
        }
        if ["filter", "retain"].contains(&name.as_str())
            && let Some(Expr::Closure(closure)) = call.args.first()
        {
            self.replace(&closure.body, "condition", "true");
        }
    }

    fn literal(&mut self, literal: &syn::ExprLit) {
        match &literal.lit {
            Lit::Bool(bool) => self.replace(literal, "constant", (!bool.value).to_string()),
            Lit::Int(int) => {
                let Ok(value) = int.base10_parse::<u64>() else { return };
                self.replace(literal, "constant", format!("{}{}", value.saturating_add(1), int.suffix()));
                if let Some(less) = value.checked_sub(1) {
                    self.replace(literal, "constant", format!("{less}{}", int.suffix()));
                }
            }
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let owner = self.source(&item.self_ty);
        self.owner.push(owner.split('<').next().unwrap_or_default().to_owned());
        item.items.iter().for_each(|item| self.visit_impl_item(item));
        self.owner.pop();
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some((_, otherwise)) = local.init.as_ref().and_then(|init| init.diverge.as_ref())
            && let Expr::Block(block) = otherwise.as_ref()
            && let Some(last) = block.block.stmts.last()
        {
            self.exits.push(last.span().byte_range().start);
        }
        visit::visit_local(self, local);
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = stmt {
            let kind = match expr {
                Expr::Return(_) | Expr::Continue(_) => Some("early exit left out"),
                Expr::MethodCall(_) | Expr::Call(_) | Expr::Try(_) | Expr::Assign(_) => {
                    Some("statement left out")
                }
                Expr::Binary(binary) if matches!(binary.op, BinOp::AddAssign(_) | BinOp::SubAssign(_)) => {
                    Some("statement left out")
                }
                _ => None,
            };
            let is_needed = self.exits.contains(&stmt.span().byte_range().start);
            if let Some(kind) = kind.filter(|_| !is_needed) {
                self.add(Form::Statement, stmt.span(), kind, String::new());
            }
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard, "guard of a match");
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let inner = self.source(&unary.expr);
                self.replace(unary, "negation", inner);
            }
            Expr::If(branch) => self.condition(&branch.cond, "condition"),
            Expr::MethodCall(call) => self.method(call),
            Expr::Lit(literal) => self.literal(literal),
            Expr::Call(call) if call.args.len() == 1 && self.source(&call.func) == "Some" => {
                self.replace(call, "None for Some", "None");
            }
            Expr::Macro(call) if call.mac.path.is_ident("matches") => {
                let whole = self.source(call);
                self.replace(call, "negation", format!("!{whole}"));
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}

/// True for a condition that binds names: no switch fits around it.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = || attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test");
        attribute.path().is_ident("test") || attribute.path().is_ident("cfg") && is_cfg_test()
    })
}
