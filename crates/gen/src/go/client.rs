//! The type whose methods are the transactions.

use mingle_lang::Plan;
use mingle_model::Name;

use super::names::{Names, STORE};
use super::{Context, comment, quoted};

impl Context<'_> {
    /// Generates the client, its methods, and the names of the stores.
    pub(super) fn client(&self) -> Vec<String> {
        let (conn, connect) = (self.wire("Conn"), self.wire("Connect"));
        let [session, with, close] =
            ["Session", "With", "Close"].map(|it| self.method_of_runtime(it));
        let show = self.wire("Show");
        let own = format!(
            "// Client is a program on a server: a method for each transaction. Goroutines may share it. NewClient makes one.
type Client struct {{
\tconn *{conn}
}}

// NewClient returns a client of the server at an address, such as \"https://shop.example\".
func NewClient(address string, config ClientConfig) (*Client, error) {{
\tconn, err := {connect}(address, config)
\tif err != nil {{
\t\treturn nil, err
\t}}
\treturn &Client{{conn: conn}}, nil
}}

// Session returns the session of the client's calls, unless they have another: each call sees what the ones
// before it have seen.
func (c *Client) Session() *Session {{
\treturn c.conn.{session}()
}}

// WithSession returns the client for another session; for a new one if it is nil.
func (c *Client) WithSession(session *Session) *Client {{
\treturn &Client{{conn: c.conn.{with}(session)}}
}}

// CloseIdleConnections closes the connections that are kept open for later calls.
func (c *Client) CloseIdleConnections() {{
\tc.conn.{close}()
}}

// Show reads an object. The flag is false if there is none.
func Show[F any](ctx context.Context, client *Client, of Handle[F], options ...ShowOption) (F, bool, error) {{
\treturn {show}(ctx, client.conn, of, options)
}}
"
        );
        let plans = &self.declared.program.plans;
        let names = Names::of_methods(plans.iter().map(|plan| &plan.name));
        let mut parts = vec![own];
        parts.extend(self.stores());
        parts.extend(plans.iter().map(|plan| self.method(&names, plan)));
        parts
    }

    /// Generates a constant for each store.
    fn stores(&self) -> Vec<String> {
        let names: Vec<Name> =
            self.declared.program.checked.stores.iter().map(|store| store.name.clone()).collect();
        let types = self.declared.type_names().map(|name| self.types.of(name).to_owned());
        let objects = self.declared.objects.iter();
        let fields = objects.map(|(_, it)| self.types.of_object_fields(&it.name.name));
        let taken: Vec<String> = types.chain(fields).collect();
        let idents = Names::of_stores(names.iter(), &taken);
        let constant = |name: &Name| {
            let (ident, value) = (idents.of(name), quoted(name));
            format!(
                "// {STORE}{ident} is the store {name}.\nconst {STORE}{ident} {STORE} = {value}\n"
            )
        };
        names.iter().map(constant).collect()
    }

    /// Generates the methods of a transaction: the call, and the call that returns early.
    fn method(&self, names: &Names, plan: &Plan) -> String {
        let (name, method, early) = (&plan.name, names.of(&plan.name), names.of_early(&plan.name));
        let values = Names::of_parameters(plan.params.iter().map(|(param, _)| param));
        let params = plan.params.iter();
        let listed = params.clone();
        let listed =
            listed.map(|(param, inner)| format!(", {} {}", values.of(param), self.shown(inner)));
        let listed = listed.collect::<Vec<_>>().concat();
        let given: Vec<&str> = params.map(|(param, _)| values.of(param)).collect();
        let call = format!("callOf{method}({})", given.join(", "));
        let about = comment::top(&format!("{method} calls the transaction {name}."), &plan.docs);
        let (result_type, codec) = match &plan.result {
            Some(result) => (self.shown(result), self.codec(result)),
            None => ("struct{}".to_owned(), format!("{}{{}}", self.wire("None"))),
        };
        let made = format!("{}(ctx, c.conn, {call}, {codec}, options)", self.wire("Result"));
        let (body, result) = match &plan.result {
            Some(_) => (format!("return {made}"), format!("({result_type}, error)")),
            None => (format!("_, err := {made}\n\treturn err"), "error".to_owned()),
        };
        let call_early = self.wire("Early");
        format!(
            "{about}func (c *Client) {method}(ctx context.Context{listed}, options ...CallOption) {result} {{
\t{body}
}}

// {early} calls the transaction {name}, and returns once a store has committed, and all stores that are visited
// before it.
func (c *Client) {early}(ctx context.Context, until Store{listed}, options ...CallOption) (Early[{result_type}], error) {{
\treturn {call_early}(ctx, c.conn, {call}, until, {codec}, options)
}}

{}",
            self.arguments(plan, method, &values, listed.trim_start_matches(", "))
        )
    }

    /// Generates the function that makes a call with its arguments.
    fn arguments(&self, plan: &Plan, method: &str, values: &Names, listed: &str) -> String {
        let arguments = plan.params.iter().map(|(param, inner)| {
            let (argument, codec) = (self.wire("Argument"), self.codec(inner));
            format!("\t{argument}(call, {}, {codec}, {})\n", quoted(param), values.of(param))
        });
        let arguments: String = arguments.collect();
        let (call, new_call) = (self.wire("Call"), self.wire("NewCall"));
        format!(
            "func callOf{method}({listed}) *{call} {{
\tcall := {new_call}({})
{arguments}\treturn call
}}
",
            quoted(&plan.name)
        )
    }
}
