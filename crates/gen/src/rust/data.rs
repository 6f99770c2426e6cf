//! Handles, structs and enumerations.

use mingle_lang::syntax::ast::{Enum, Object, Struct};
use mingle_model::{Name, Type};
use proc_macro2::TokenStream;
use quote::quote;

use super::names::Names;
use super::{Context, allowed, doc};

impl Context<'_> {
    /// Generates a kind of object: a handle that holds the key.
    pub(super) fn handle(&self, docs: &str, object: &Object) -> TokenStream {
        let kind = &*object.name.name;
        let declared = &self.program.schema().objects[kind];
        let key_name = &declared.key_name;
        let ident = self.types.ident(&object.name.name);
        let key_ident = Names::of_values(std::iter::once(key_name)).ident(key_name);
        let docs = doc(docs, &format!("The handle of a `{kind}`, whether or not that exists."));
        let new_docs = format!(" The `{kind}` with this key.");
        let key = self.owned(&declared.key_type);
        let accessor = accessor(&key_ident, &object.key.docs, &declared.key_type, &key);
        let (attributes, allowed) = (derives(true), allowed());
        quote! {
            #docs
            #attributes
            #[serde(crate = "::mingle::typed::serde", transparent)]
            #allowed
            pub struct #ident(#key);

            #allowed
            impl #ident {
                #[doc = #new_docs]
                pub fn new(key: impl ::std::convert::Into<#key>) -> Self {
                    Self(key.into())
                }

                #accessor
            }

            impl ::mingle::typed::ToValue for #ident {
                fn to_value(&self) -> ::mingle::typed::Value {
                    ::mingle::typed::handle(#kind, &self.0)
                }
            }

            impl ::mingle::typed::FromValue for #ident {
                fn from_value(value: &::mingle::typed::Value) -> ::std::option::Option<Self> {
                    ::mingle::typed::key_of(#kind, value).map(Self)
                }
            }
        }
    }

    /// Generates a struct, with its fields in their order.
    pub(super) fn record(&self, docs: &str, written: &Struct) -> TokenStream {
        let name = &written.name.name;
        let ident = self.types.ident(name);
        let docs = doc(docs, &format!("The struct `{name}`."));
        let declared = &self.program.schema().structs[name];
        let names = Names::of_values(declared.fields.iter().map(|(field, _)| field));
        let idents: Vec<_> = declared.fields.iter().map(|(field, _)| names.ident(field)).collect();
        let fields =
            written.fields.iter().zip(&declared.fields).map(|(written, (field, inner))| {
                let docs = doc(&written.docs, &format!("The field `{field}`."));
                let (ident, inner) = (names.ident(field), self.of_field(name, inner));
                let rename = renamed(field, &ident.to_string());
                quote! { #docs #rename pub #ident: #inner }
            });
        let (attributes, allowed) = (derives(self.is_total(name)), allowed());
        quote! {
            #docs
            #attributes
            #[serde(crate = "::mingle::typed::serde")]
            #allowed
            pub struct #ident { #(#fields,)* }

            impl ::mingle::typed::ToValue for #ident {
                fn to_value(&self) -> ::mingle::typed::Value {
                    ::mingle::typed::record([#(::mingle::typed::ToValue::to_value(&self.#idents)),*])
                }
            }

            impl ::mingle::typed::FromValue for #ident {
                fn from_value(value: &::mingle::typed::Value) -> ::std::option::Option<Self> {
                    let [#(#idents),*] = ::mingle::typed::fields_of(value)?;
                    ::std::option::Option::Some(Self {
                        #(#idents: ::mingle::typed::FromValue::from_value(#idents)?,)*
                    })
                }
            }
        }
    }
}

impl Context<'_> {
    /// Generates an enumeration: its variants have the names of its values, and serde uses the labels.
    pub(super) fn enumeration(&self, docs: &str, written: &Enum) -> TokenStream {
        let name = &written.name.name;
        let ident = self.types.ident(name);
        let docs = doc(docs, &format!("The enum `{name}`."));
        let names = Names::of_variants(written.values.iter().map(|value| &value.name.name));
        let idents: Vec<_> =
            written.values.iter().map(|value| names.ident(&value.name.name)).collect();
        let declared = self.program.checked.enums.iter().find(|known| known.name == *name);
        let values = declared.into_iter().flat_map(|declared| &declared.values);
        let labels: Vec<String> = values.map(|value| value.label.to_string()).collect();
        let variants = written.values.iter().zip(&idents).zip(&labels);
        let variants = variants.map(|((value, ident), label)| {
            let docs = doc(&value.docs, &format!("The value `{}`.", value.name.name));
            quote! { #docs #[serde(rename = #label)] #ident }
        });
        let (attributes, allowed) = (derives(true), allowed());
        quote! {
            #docs
            #[derive(::std::marker::Copy)]
            #attributes
            #[serde(crate = "::mingle::typed::serde")]
            #allowed
            pub enum #ident { #(#variants,)* }

            #allowed
            impl #ident {
                /// Returns the label, the text of the value in stores and in JSON.
                pub fn label(self) -> &'static str {
                    match self { #(Self::#idents => #labels,)* }
                }
            }

            impl ::mingle::typed::ToValue for #ident {
                fn to_value(&self) -> ::mingle::typed::Value {
                    ::mingle::typed::Value::from(self.label())
                }
            }

            impl ::mingle::typed::FromValue for #ident {
                fn from_value(value: &::mingle::typed::Value) -> ::std::option::Option<Self> {
                    match value.as_str()? {
                        #(#labels => ::std::option::Option::Some(Self::#idents),)*
                        _ => ::std::option::Option::None,
                    }
                }
            }
        }
    }
}

/// Generates the method that returns a handle's key, named as in the program.
fn accessor(
    ident: &proc_macro2::Ident,
    docs: &str,
    key_type: &Type,
    key: &TokenStream,
) -> TokenStream {
    let docs = doc(docs, "Its key.");
    let (shown, value) = match key_type {
        Type::String => (quote!(&str), quote!(&self.0)),
        Type::Bytes => (quote!(&[u8]), quote!(&self.0)),
        Type::Ref(_) => (quote!(&#key), quote!(&self.0)),
        _ => (key.clone(), quote!(self.0)),
    };
    quote! {
        #docs
        pub fn #ident(&self) -> #shown {
            #value
        }
    }
}

/// Returns the attribute that makes serde use the field's name in the program.
fn renamed(field: &Name, ident: &str) -> Option<TokenStream> {
    let written = ident.strip_prefix("r#").unwrap_or(ident);
    (*written != **field).then(|| {
        let field = &**field;
        quote!(#[serde(rename = #field)])
    })
}

fn derives(is_total: bool) -> TokenStream {
    let total = is_total.then(|| {
        quote! {
            #[derive(
                ::std::cmp::Eq, ::std::cmp::PartialOrd, ::std::cmp::Ord, ::std::hash::Hash
            )]
        }
    });
    quote! {
        #[derive(::std::clone::Clone, ::std::fmt::Debug, ::std::cmp::PartialEq)]
        #total
        #[derive(::mingle::typed::serde::Serialize, ::mingle::typed::serde::Deserialize)]
    }
}
