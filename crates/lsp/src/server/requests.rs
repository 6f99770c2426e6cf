//! The requests of a running server.

use gen_lsp_types::{
    CodeActionParams, CompletionParams, DefinitionParams, DocumentFormattingParams,
    DocumentHighlightParams, DocumentSymbolParams, HoverParams, InlayHintParams, Position,
    ReferenceParams, RenameParams, TextDocumentPositionParams, Uri,
};
use mingle_lang::diagnostic::Code;
use serde_json::{Value, json};

use super::Server;
use crate::document::Document;
use crate::rpc::{self, Answer, ErrorCode, Failure};
use crate::{actions, completion, hints, hover, layout, names, rename, symbols};

impl Server {
    pub(super) fn request(&mut self, method: &str, params: Value) -> Answer {
        match method {
            "textDocument/hover" => {
                let params: HoverParams = rpc::params(params)?;
                self.at(&params.text_document_position_params, hover::hover)
            }
            "textDocument/definition" => {
                let params: DefinitionParams = rpc::params(params)?;
                self.at(&params.text_document_position_params, names::definition)
            }
            "textDocument/references" => {
                let params: ReferenceParams = rpc::params(params)?;
                let with_declared = params.context.include_declaration;
                self.at(&params.text_document_position_params, |document, position| {
                    names::references(document, position, with_declared)
                })
            }
            "textDocument/documentHighlight" => {
                let params: DocumentHighlightParams = rpc::params(params)?;
                self.at(&params.text_document_position_params, names::highlights)
            }
            "textDocument/completion" => {
                let params: CompletionParams = rpc::params(params)?;
                self.at(&params.text_document_position_params, completion::complete)
            }
            "textDocument/prepareRename" => {
                let params: TextDocumentPositionParams = rpc::params(params)?;
                rename::prepare(self.checked(&params.text_document.uri)?, params.position)
            }
            "textDocument/rename" => {
                let params: RenameParams = rpc::params(params)?;
                let place = params.text_document_position_params;
                let document = self.checked(&place.text_document.uri)?;
                rename::rename(document, place.position, &params.new_name)
            }
            "textDocument/documentSymbol" => {
                let params: DocumentSymbolParams = rpc::params(params)?;
                Ok(symbols::symbols(self.checked(&params.text_document.uri)?))
            }
            "textDocument/formatting" => {
                let params: DocumentFormattingParams = rpc::params(params)?;
                Ok(layout::layout(self.checked(&params.text_document.uri)?))
            }
            "textDocument/inlayHint" => {
                let params: InlayHintParams = rpc::params(params)?;
                Ok(hints::hints(self.checked(&params.text_document.uri)?, params.range))
            }
            "textDocument/codeAction" => {
                let params: CodeActionParams = rpc::params(params)?;
                let explains = self.explains;
                let document = self.checked(&params.text_document.uri)?;
                Ok(actions::actions(document, &params, explains))
            }
            "mingle/explain" => explain(&params),
            _ => {
                let message = format!("no method is called `{method}`");
                Err(Failure::new(ErrorCode::MethodNotFound, message))
            }
        }
    }

    /// Returns a document after checking it.
    fn checked(&mut self, uri: &Uri) -> Result<&mut Document, Failure> {
        self.check(uri.as_ref());
        self.document(uri)
    }

    fn at(
        &mut self,
        place: &TextDocumentPositionParams,
        ask: impl FnOnce(&Document, Position) -> Value,
    ) -> Answer {
        Ok(ask(self.checked(&place.text_document.uri)?, place.position))
    }
}

/// Returns the page that explains a code: `{"code": "M0302"}` gives Markdown.
fn explain(params: &Value) -> Answer {
    let code = params["code"].as_str().unwrap_or_default();
    match Code::find(code) {
        Some(code) => Ok(json!(code.explanation())),
        None => {
            let message = format!("no diagnostic has the code `{code}`");
            Err(Failure::new(ErrorCode::InvalidParams, message))
        }
    }
}
