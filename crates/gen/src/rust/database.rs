//! The program over its stores: a method for each transaction.

use mingle_lang::Plan;
use proc_macro2::TokenStream;
use quote::quote;

use crate::lines::one_line;

use super::names::Names;
use super::{Context, allowed, doc};

impl Context<'_> {
    /// Generates the type whose methods are the transactions.
    pub(super) fn database(&self) -> TokenStream {
        let docs = format!(
            " The program {} over its stores: a method for each transaction.",
            one_line(self.origin)
        );
        let (text, allowed) = (&*self.program.text, allowed());
        let names = Names::of_methods(self.program.plans.iter().map(|plan| &plan.name));
        let methods = self.program.plans.iter().map(|plan| self.method(&names, plan));
        quote! {
            #[doc = #docs]
            #[derive(::std::clone::Clone, ::std::fmt::Debug)]
            #allowed
            pub struct Database(::mingle::typed::Handle);

            impl ::mingle::typed::Program for Database {
                const TEXT: &'static str = #text;

                fn from_handle(handle: ::mingle::typed::Handle) -> Self {
                    Self(handle)
                }
            }

            #allowed
            impl Database {
                /// Opens the stores, once it is awaited: in this process, and in memory, unless a
                /// binding or a folder is given. Must be awaited on a tokio runtime, on which
                /// transactions then run.
                pub fn connect() -> ::mingle::typed::Connect<Self> {
                    ::mingle::typed::Connect::new()
                }

                /// Over stores that are open.
                ///
                /// # Errors
                ///
                /// When they are open for another program.
                pub fn over(
                    database: ::std::sync::Arc<::mingle::Database>,
                ) -> ::std::result::Result<Self, ::mingle::Error> {
                    ::mingle::typed::Handle::new::<Self>(database).map(Self)
                }

                /// The same stores, for one client: its calls see what it has seen and written.
                pub fn with_session(&self, session: &::mingle::Session) -> Self {
                    Self(self.0.with_session(session))
                }

                /// What is the same for all programs: looking at objects, recovery, warnings.
                pub fn untyped(&self) -> &::std::sync::Arc<::mingle::Database> {
                    self.0.database()
                }

                #(#methods)*
            }
        }
    }

    fn method(&self, names: &Names, plan: &Plan) -> TokenStream {
        let name = &*plan.name;
        let ident = names.ident(&plan.name);
        let docs = doc(&plan.docs, &format!("The transaction `{name}`."));
        let values = Names::of_values(plan.params.iter().map(|(param, _)| param));
        let params: Vec<_> = plan.params.iter().map(|(param, _)| values.ident(param)).collect();
        let types = plan.params.iter().map(|(_, param_type)| self.borrowed(param_type));
        let result = plan.result.as_ref().map_or_else(|| quote!(()), |result| self.owned(result));
        quote! {
            #docs
            pub fn #ident(&self, #(#params: #types),*) -> ::mingle::typed::Call<#result> {
                self.0.call(#name, [#(::mingle::typed::ToValue::to_value(&#params)),*])
            }
        }
    }
}
