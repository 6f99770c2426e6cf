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
        let params: Vec<String> = plan
            .params
            .iter()
            .map(|(param, inner)| format!("{} {}", values.of(param), self.shown(inner)))
            .collect();
        let after = |params: &[String]| -> String {
            params.iter().map(|param| format!(", {param}")).collect()
        };
        let given: Vec<String> =
            plan.params.iter().map(|(it, _)| values.of(it).to_owned()).collect();
        let (given, listed) = (given.join(", "), after(&params));
        let about = comment::top(&format!("{method} calls the transaction {name}."), &plan.docs);
        let call = format!("callOf{method}({given})");
        let (body, result, early_result) = match &plan.result {
            Some(inner) => {
                let (codec, shown) = (self.codec(inner), self.shown(inner));
                let body = format!(
                    "return {}(ctx, c.conn, {call}, {codec}, options)",
                    self.wire("Result")
                );
                (body, format!("({shown}, error)"), (shown, codec))
            }
            None => {
                let codec = format!("{}{{}}", self.wire("None"));
                let made =
                    format!("{}(ctx, c.conn, {call}, {codec}, options)", self.wire("Result"));
                let body = format!("_, err := {made}\n\treturn err");
                (body, "error".to_owned(), ("struct{}".to_owned(), codec))
            }
        };
        let (early_type, codec) = early_result;
        let arguments = plan.params.iter().map(|(param, inner)| {
            let (argument, codec) = (self.wire("Argument"), self.codec(inner));
            format!("\t{argument}(call, {}, {codec}, {})\n", quoted(param), values.of(param))
        });
        let arguments: String = arguments.collect();
        format!(
            "{about}func (c *Client) {method}(ctx context.Context{listed}, options ...CallOption) {result} {{
\t{body}
}}

// {early} calls the transaction {name}, and returns once a store has committed, and all stores that are visited
// before it.
func (c *Client) {early}(ctx context.Context, until Store{listed}, options ...CallOption) (Early[{early_type}], error) {{
\treturn {}(ctx, c.conn, {call}, until, {codec}, options)
}}

func callOf{method}({}) *{} {{
\tcall := {}({})
{arguments}\treturn call
}}
",
            self.wire("Early"),
            params.join(", "),
            self.wire("Call"),
            self.wire("NewCall"),
            quoted(name),
        )
    }
}
