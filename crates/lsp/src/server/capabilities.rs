//! The initial exchange of capabilities between client and server.

use gen_lsp_types::{
    CodeActionKind, CodeActionOptions, CompletionOptions, InitializeParams, PositionEncodingKind,
    RenameOptions, ServerCapabilities, TextDocumentSyncKind, TextDocumentSyncOptions,
    WorkDoneProgressOptions,
};
use serde_json::{Value, json};

use super::Server;
use crate::diagnostics::EXPLAIN_SCHEME;
use crate::text::Encoding;

impl Server {
    /// Chooses an encoding and returns the server's capabilities.
    pub(super) fn initialize(&mut self, params: &InitializeParams) -> Value {
        let general = params.capabilities.general.as_ref();
        let offered = general.and_then(|general| general.position_encodings.as_deref());
        if offered.is_some_and(|offered| offered.contains(&PositionEncodingKind::UTF8)) {
            self.encoding = Encoding::Utf8;
        }
        let options = params.initialization_options.as_ref();
        let scheme = options.and_then(|options| options["explainScheme"].as_str());
        self.explains = scheme == Some(EXPLAIN_SCHEME);
        json!({
            "capabilities": capabilities(self.encoding),
            "serverInfo": { "name": "mingle", "version": env!("CARGO_PKG_VERSION") },
        })
    }
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(From::from(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::Incremental),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(true.into()),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".into()]),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(true.into()),
        references_provider: Some(true.into()),
        document_highlight_provider: Some(true.into()),
        document_symbol_provider: Some(true.into()),
        code_action_provider: Some(From::from(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QuickFix]),
            ..CodeActionOptions::default()
        })),
        document_formatting_provider: Some(true.into()),
        rename_provider: Some(From::from(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        inlay_hint_provider: Some(true.into()),
        ..ServerCapabilities::default()
    }
}
