//! Types of a program as types of Rust.

use std::collections::BTreeSet;

use mingle_model::{Name, Type};
use proc_macro2::TokenStream;
use quote::quote;

use super::Context;

impl Context<'_> {
    /// Returns the type of an owned value: of a field, or of a result.
    pub(super) fn owned(&self, value_type: &Type) -> TokenStream {
        self.owned_in(value_type, &BTreeSet::new())
    }

    /// Returns the type as [`Self::owned`] does, with a box around structs that contain the field's
    /// own struct: Rust needs to know their size.
    fn owned_in(&self, value_type: &Type, boxed: &BTreeSet<&Name>) -> TokenStream {
        match value_type {
            Type::Bool => quote!(bool),
            Type::Int => quote!(i64),
            Type::Float => quote!(f64),
            Type::String => quote!(::std::string::String),
            Type::Bytes => quote!(::std::vec::Vec<u8>),
            Type::Time => quote!(::mingle::typed::Time),
            Type::Date => quote!(::mingle::typed::Date),
            Type::Decimal => quote!(::mingle::typed::Decimal),
            Type::Json => quote!(::mingle::typed::Document),
            Type::Enum(declared) => {
                let ident = self.types.ident(&declared.name);
                quote!(#ident)
            }
            Type::Struct(name) => {
                let ident = self.types.ident(name);
                if boxed.contains(name) {
                    quote!(::std::boxed::Box<#ident>)
                } else {
                    quote!(#ident)
                }
            }
            Type::Ref(name) => {
                let ident = self.types.ident(name);
                quote!(#ident)
            }
            Type::Option(inner) => {
                let inner = self.owned_in(inner, boxed);
                quote!(::std::option::Option<#inner>)
            }
            // A list stores its items elsewhere.
            Type::List(inner) => {
                let inner = self.owned(inner);
                quote!(::std::vec::Vec<#inner>)
            }
            Type::Rushed(inner) => {
                let inner = self.owned(inner);
                quote!(::mingle::typed::Rushed<#inner>)
            }
        }
    }

    /// Returns the type of a struct's field.
    pub(super) fn of_field(&self, owner: &Name, value_type: &Type) -> TokenStream {
        let structs = &self.program.schema().structs;
        let boxed = structs.keys().filter(|name| self.reaches(name, owner)).collect();
        self.owned_in(value_type, &boxed)
    }

    /// Returns the type of a parameter: borrowed if a copy would cost something.
    pub(super) fn borrowed(&self, value_type: &Type) -> TokenStream {
        match value_type {
            Type::String => quote!(&str),
            Type::Bytes => quote!(&[u8]),
            Type::Struct(_) | Type::Ref(_) | Type::Json => {
                let owned = self.owned(value_type);
                quote!(&#owned)
            }
            Type::List(inner) => {
                let inner = self.owned(inner);
                quote!(&[#inner])
            }
            Type::Option(inner) => {
                let inner = self.borrowed(inner);
                quote!(::std::option::Option<#inner>)
            }
            Type::Bool
            | Type::Int
            | Type::Float
            | Type::Time
            | Type::Date
            | Type::Decimal
            | Type::Enum(_)
            | Type::Rushed(_) => self.owned(value_type),
        }
    }

    /// True if a value of struct `from` holds one of struct `to` without a list between them.
    fn reaches(&self, from: &Name, to: &Name) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(name) = open.pop() {
            if name == to {
                return true;
            }
            if seen.insert(name) {
                let fields = &self.program.schema().structs[name].fields;
                open.extend(fields.iter().filter_map(|(_, inner)| held(inner)));
            }
        }
        false
    }

    /// True if Rust can order and hash values of a type: floats have neither.
    pub(super) fn is_total(&self, name: &Name) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            for (_, field) in &self.program.schema().structs[name].fields {
                match innermost(field) {
                    Type::Float => return false,
                    Type::Struct(inner) => open.push(inner),
                    _ => {}
                }
            }
        }
        true
    }
}

/// Returns the struct that a value of this type holds, in an option or directly.
fn held(value_type: &Type) -> Option<&Name> {
    match value_type {
        Type::Struct(name) => Some(name),
        Type::Option(inner) => held(inner),
        _ => None,
    }
}

fn innermost(value_type: &Type) -> &Type {
    match value_type {
        Type::Option(inner) | Type::List(inner) | Type::Rushed(inner) => innermost(inner),
        other => other,
    }
}
