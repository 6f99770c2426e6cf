//! The class whose methods are the transactions.

use mingle_lang::Plan;
use mingle_model::Type;

use super::names::Names;
use super::{Context, doc};
use crate::text::wrapped;

/// The members of the client beside the transactions.
const MEMBERS: &str = include_str!("client.py");

impl Context<'_> {
    pub(super) fn client(&self) -> String {
        let stores = self.declared.program.checked.stores.iter();
        let stores: Vec<String> = stores.map(|store| format!("\"{}\"", store.name)).collect();
        let stores = if stores.is_empty() {
            "NoReturn".to_owned()
        } else {
            format!("Literal[{}]", stores.join(", "))
        };
        let about = format!(
            "The program {} on a server, which `mingle serve` is: a method for each transaction.",
            self.origin
        );
        let about = doc("    ", &about, "");
        let plans = &self.declared.program.plans;
        let names = Names::of_methods(plans.iter().map(|plan| &plan.name), &self.types);
        let methods: String = plans.iter().map(|plan| self.method(&names, plan)).collect();
        format!(
            "#: The stores of the program.\nStore = {stores}\n\n\nclass Client:\n{about}\n{MEMBERS}{methods}"
        )
    }

    fn method(&self, names: &Names, plan: &Plan) -> String {
        let (name, method) = (&plan.name, names.of(&plan.name));
        let values = Names::of_parameters(plan.params.iter().map(|(param, _)| param), &self.types);
        let is_option = |(_, inner): &&(_, Type)| matches!(inner, Type::Option(_));
        let optional = plan.params.iter().rev().take_while(is_option).count();
        let params = plan.params.iter().enumerate().map(|(at, (param, inner))| {
            // Trailing optional parameters may be omitted.
            let default = if at + optional >= plan.params.len() { " = None" } else { "" };
            format!("{}: {}{default}", values.of(param), self.taken(inner))
        });
        let params: Vec<String> = std::iter::once("self".to_owned()).chain(params).collect();
        let (result, codec) = match &plan.result {
            Some(result) => (self.received(result), self.codec(result)),
            None => ("None".to_owned(), "_none".to_owned()),
        };
        let with = |until: &[&str]| {
            let options = [&["*"], until, &["options: Options | None = None"]].concat();
            [params.clone(), options.into_iter().map(str::to_owned).collect()].concat()
        };
        let before = format!("    def {method}");
        let late = wrapped(&before, &with(&[]), &format!(" -> {result}: ..."));
        let early = with(&["until: Store"]);
        let early = wrapped(&before, &early, &format!(" -> Early[{result}]: ..."));
        let either = with(&["until: Store | None = None"]);
        let either = wrapped(&before, &either, &format!(" -> {result} | Early[{result}]:"));
        let values = plan.params.iter().map(|(param, inner)| {
            format!(
                "            \"{param}\": _given(\"{param}\", {}, {}),\n",
                self.codec(inner),
                values.of(param)
            )
        });
        let values: String = values.collect();
        let values =
            if values.is_empty() { "{}".into() } else { format!("{{\n{values}        }}") };
        let docs = doc("        ", &plan.docs, &format!("The transaction `{name}`."));
        format!(
            "
    @overload
{late}

    @overload
{early}

{either}
{docs}        return self._call(\"{name}\", {values}, {codec}, until, options)
"
        )
    }
}
