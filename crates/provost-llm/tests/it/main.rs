//! Models through the public API: scripts, and providers behind a loopback server with their real wire format.

#[cfg(test)]
mod anthropic_answers;
#[cfg(test)]
mod anthropic_binding;
#[cfg(test)]
mod anthropic_faults;
#[cfg(test)]
mod anthropic_refusals;
#[cfg(test)]
mod anthropic_request;
#[cfg(test)]
mod anthropic_support;
#[cfg(test)]
mod gemini_answers;
#[cfg(test)]
mod gemini_refusals;
#[cfg(test)]
mod gemini_request;
#[cfg(test)]
mod gemini_support;
#[cfg(test)]
mod gemini_usage;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod matrix_answers;
#[cfg(test)]
mod matrix_asides;
#[cfg(test)]
mod matrix_connection;
#[cfg(test)]
mod matrix_faults;
#[cfg(test)]
mod matrix_judge;
#[cfg(test)]
mod matrix_limits;
#[cfg(test)]
mod matrix_refusals;
#[cfg(test)]
mod matrix_request;
#[cfg(test)]
mod matrix_run;
#[cfg(test)]
mod openai_chat_answers;
#[cfg(test)]
mod openai_chat_calls;
#[cfg(test)]
mod openai_chat_refusals;
#[cfg(test)]
mod openai_chat_request;
#[cfg(test)]
mod openai_chat_support;
#[cfg(test)]
mod openai_chat_usage;
#[cfg(test)]
mod openai_responses_answers;
#[cfg(test)]
mod openai_responses_custom;
#[cfg(test)]
mod openai_responses_refusals;
#[cfg(test)]
mod openai_responses_request;
#[cfg(test)]
mod openai_responses_support;
#[cfg(test)]
mod resolving;
#[cfg(test)]
mod script_agents;
#[cfg(test)]
mod script_asides;
#[cfg(test)]
mod script_errors;
#[cfg(test)]
mod script_expectations;
#[cfg(test)]
mod script_verdicts;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod server;
#[cfg(test)]
mod speaker;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tape;
#[cfg(test)]
mod tape_errors;
#[cfg(test)]
mod tape_judges;
#[cfg(test)]
mod tape_support;
#[cfg(test)]
mod wire_check;
