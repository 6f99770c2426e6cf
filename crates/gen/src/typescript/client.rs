//! The class whose methods are the transactions.

use mingle_lang::Plan;

use super::names::Names;
use super::{Context, doc};
use crate::text::wrapped;

impl Context<'_> {
    pub(super) fn client(&self) -> String {
        let stores = self.declared.program.checked.stores.iter();
        let stores: Vec<String> = stores.map(|store| format!("\"{}\"", store.name)).collect();
        let stores = if stores.is_empty() { "never".to_owned() } else { stores.join(" | ") };
        let about = format!(
            "The program {} on a server, which `mingle serve` is: a method for each transaction.",
            self.origin
        );
        let about = doc("", &about, "");
        let plans = &self.declared.program.plans;
        let names = Names::of_methods(plans.iter().map(|plan| &plan.name));
        let methods: String = plans.iter().map(|plan| self.method(&names, plan)).collect();
        format!(
            "/** The stores of the program. */
export type Store = {stores};

{about}export class Client {{
  readonly #connection: $Connection;

  /** A client of the server at `url`, such as `https://shop.example`. */
  constructor(url: string | URL, options: ClientOptions = {{}}) {{
    this.#connection = new $Connection(url, options);
  }}

  /** The session of its calls, unless they say another: what one has seen, the next ones see. */
  get session(): Session {{
    return this.#connection.session;
  }}

  /** The same, for another session. */
  withSession(session: Session): Client {{
    return new Client(...this.#connection.with(session));
  }}

  /** Reads an object; `null` if there is none. */
  async show<F>(handle: Handle<F>, options?: ShowOptions): Promise<F | null> {{
    return this.#connection.show(handle, options);
  }}
{methods}}}
"
        )
    }

    fn method(&self, names: &Names, plan: &Plan) -> String {
        let (name, method) = (&plan.name, names.of(&plan.name));
        let values = Names::of_parameters(plan.params.iter().map(|(param, _)| param));
        let params = plan.params.iter();
        let params =
            params.map(|(param, inner)| format!("{}: {}", values.of(param), self.taken(inner)));
        let params: Vec<String> = params.collect();
        let (result, codec) = match &plan.result {
            Some(result) => (self.received(result), self.codec(result)),
            None => ("void".to_owned(), "$none".to_owned()),
        };
        let with = |options: &str| [params.as_slice(), &[options.to_owned()]].concat();
        let before = format!("  {method}");
        let late =
            wrapped(&before, &with("options?: CallOptions"), &format!(": Promise<{result}>;"));
        let after = format!(": Promise<Early<{result}>>;");
        let early = wrapped(&before, &with("options: EarlyOptions"), &after);
        let either = with("options?: CallOptions | EarlyOptions");
        let either = wrapped(&format!("  async {method}"), &either, " {");
        let values = plan.params.iter().map(|(param, inner)| {
            format!(
                "[\"{param}\", $given(\"{param}\", {}, {})]",
                self.codec(inner),
                values.of(param)
            )
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let docs = doc("  ", &plan.docs, &format!("The transaction `{name}`."));
        let again = doc("  ", &format!("`{method}`, answered once a store has committed."), "");
        format!(
            "
{docs}{late}
{again}{early}
{either}
    const $params = [{values}] as const;
    return this.#connection.call(\"{name}\", $params, {codec}, options);
  }}
"
        )
    }
}
