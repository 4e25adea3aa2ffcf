//! The protocol: the only file that knows its types.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::calls::Calls;
use crate::tools::{Effect, TOOLS, ToolText};
use crate::{McpServerError, McpServerOptions};

/// Bytes of a message of the client. A longer one isn't read.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
const INSTRUCTIONS: &str = "Provost runs autonomous agents under supervision. Start one with run_start, wait with \
                            run_wait until it is no longer `running`, then read run_result. Calls that need approval are \
                            answered by a person, never by you.";

/// Serves one client.
pub(crate) async fn serve(
    options: McpServerOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpServerError> {
    let failed = |error: &dyn std::fmt::Display| McpServerError::Connection(error.to_string());
    let transport =
        AsyncRwTransport::<RoleServer, _, _>::new(input, output).with_max_line_length(MESSAGE_BYTES_MAX);
    let server = RunServer { calls: Arc::new(Calls::new(options)) };
    let serving = server.serve(transport).await.map_err(|error| failed(&error))?;
    serving.waiting().await.map_err(|error| failed(&error))?;
    Ok(())
}

struct RunServer {
    calls: Arc<Calls>,
}

impl ServerHandler for RunServer {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("provost", env!("CARGO_PKG_VERSION")).with_title("Provost");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find(|tool| tool.name == name).map(tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(text) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let name = provost_view::visible(&request.name);
            return Err(ErrorData::invalid_params(format!("there is no tool {name}"), None));
        };
        let call = self.calls.call(text.tool, request.arguments.unwrap_or_default());
        let Some(result) = context.ct.run_until_cancelled(call).await else {
            return Err(ErrorData::internal_error("the call was cancelled", None));
        };
        let result = match result {
            Ok(view) => CallToolResult::structured(view),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        };
        Ok(result.into())
    }
}

fn tool(text: &ToolText) -> Tool {
    let hints = match text.effect {
        Effect::Reads => ToolAnnotations::new().read_only(true),
        Effect::Adds => ToolAnnotations::new().read_only(false).destructive(false),
        Effect::Ends => ToolAnnotations::new().read_only(false).destructive(true),
    };
    Tool::new(text.name, text.description, text.tool.schema()).with_annotations(hints)
}
