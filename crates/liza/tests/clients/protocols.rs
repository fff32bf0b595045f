//! The four protocols of the scripted model: what a request says, and how an answer is streamed.

use serde_json::{Value, json};

use crate::model_server::{Conversation, Move, ShellTool};

/// How a program talks to its model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Protocol {
    /// Anthropic Messages (claude).
    Messages,
    /// OpenAI Responses (codex).
    Responses,
    /// OpenAI Chat Completions (goose, opencode, vibe).
    Chat,
    /// Gemini's own (gemini).
    Contents,
}

pub(crate) fn protocol_of(path: &str) -> Option<Protocol> {
    let path = path.split('?').next().unwrap_or_default();
    match path.trim_end_matches('/') {
        path if path.ends_with("/messages") => Some(Protocol::Messages),
        path if path.ends_with("/responses") => Some(Protocol::Responses),
        path if path.ends_with("/chat/completions") => Some(Protocol::Chat),
        path if path.ends_with("enerateContent") => Some(Protocol::Contents),
        _ => None,
    }
}

impl Protocol {
    /// What the script needs to know of a request.
    pub(crate) fn conversation(self, body: &Value) -> Conversation {
        let messages = match self {
            Protocol::Messages | Protocol::Chat => &body["messages"],
            Protocol::Responses => &body["input"],
            Protocol::Contents => &body["contents"],
        };
        let is_result = |message: &Value| match self {
            Protocol::Messages => count(&message["content"], |part| part["type"] == "tool_result"),
            Protocol::Contents => count(&message["parts"], |part| part["functionResponse"].is_object()),
            Protocol::Chat => usize::from(message["role"] == "tool"),
            Protocol::Responses => {
                usize::from(message["type"].as_str().is_some_and(|kind| kind.ends_with("call_output")))
            }
        };
        let mut text = strings(messages);
        for part in ["system", "instructions", "systemInstruction"] {
            text.push_str(&strings(&body[part]));
        }
        Conversation {
            text,
            tool_results: messages.as_array().into_iter().flatten().map(is_result).sum(),
            shell: body["tools"].as_array().into_iter().flatten().flat_map(declared).find_map(shell_tool),
            tools: body["tools"].as_array().into_iter().flatten().flat_map(declared).map(tool_name).collect(),
            size: body.to_string().len(),
        }
    }

    /// Whether the answer to this request is a stream.
    pub(crate) fn streams(self, path: &str, body: &Value) -> bool {
        match self {
            Protocol::Messages | Protocol::Responses | Protocol::Chat => body["stream"] == true,
            Protocol::Contents => path.contains(":streamGenerateContent"),
        }
    }

    /// The answer as a stream of events.
    pub(crate) fn stream(self, next: &Move, conversation: &Conversation, body: &Value) -> String {
        match self {
            Protocol::Messages => messages_stream(next, conversation, body),
            Protocol::Responses => responses_stream(next, conversation),
            Protocol::Chat => chat_stream(next, conversation, body),
            Protocol::Contents => format!("data: {}\n\n", contents_answer(next, conversation)),
        }
    }

    /// The answer as one object.
    pub(crate) fn whole(self, next: &Move, conversation: &Conversation, body: &Value) -> Value {
        let text = if let Move::Say(text) = next { text.clone() } else { String::new() };
        match self {
            Protocol::Messages => json!({"id": "msg_1", "type": "message", "role": "assistant",
                "model": body["model"], "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 5}, "input_tokens": 10}),
            Protocol::Responses => json!({"id": "resp_1", "output": [output_item(next, conversation)]}),
            Protocol::Contents => contents_answer(next, conversation),
            Protocol::Chat => json!({"id": "chat_1", "object": "chat.completion", "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
        }
    }
}

fn count(parts: &Value, is: impl Fn(&Value) -> bool) -> usize {
    parts.as_array().into_iter().flatten().filter(|part| is(part)).count()
}

/// All texts in a value.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(parts) => parts.iter().map(strings).collect(),
        Value::Object(fields) => fields.values().map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The tools of an entry: gemini lists several in one.
fn declared(entry: &Value) -> Vec<&Value> {
    match entry["functionDeclarations"].as_array() {
        Some(tools) => tools.iter().collect(),
        None => vec![entry],
    }
}

/// The name of a tool, or its kind if the provider runs it.
fn tool_name(tool: &Value) -> String {
    let names = [&tool["name"], &tool["function"]["name"], &tool["type"]];
    names.iter().find_map(|name| name.as_str()).unwrap_or_default().to_owned()
}

/// The tool that runs shell commands: names and shapes are the program's own.
fn shell_tool(tool: &Value) -> Option<ShellTool> {
    let tool = if tool["function"].is_object() { &tool["function"] } else { tool };
    let name = tool["name"].as_str()?;
    let known =
        ["Bash", "exec_command", "shell", "developer__shell", "shell_command", "bash", "run_shell_command"];
    let schemas = ["input_schema", "parameters", "parametersJsonSchema"];
    let schema = schemas.iter().map(|key| &tool[*key]).find(|schema| schema.is_object())?;
    let is_text = |key: &&&str| {
        let kind = schema["properties"][**key]["type"].as_str().unwrap_or_default();
        kind.eq_ignore_ascii_case("string")
    };
    let argument = *["command", "cmd"].iter().find(is_text)?;
    // opencode requires a description; vibe refuses what it has not declared.
    let is_described = schema["properties"]["description"].is_object();
    known.contains(&name).then(|| ShellTool { name: name.to_owned(), argument, is_described })
}

/// The call of the shell tool: name and arguments.
fn call(command: &str, conversation: &Conversation) -> (String, String) {
    let ShellTool { name, argument, is_described } = conversation.shell.clone().unwrap_or_default();
    // gemini refuses substitutions in a command.
    let command = if name == "run_shell_command" { encoded(command) } else { command.to_owned() };
    let mut arguments = json!({ argument: command });
    if is_described {
        arguments["description"] = json!("work");
    }
    (name, arguments.to_string())
}

/// A script as a command without anything that a shell would expand.
fn encoded(script: &str) -> String {
    let bytes: String = script.bytes().map(|byte| format!("\\0{byte:03o}")).collect();
    format!("printf %b '{bytes}' | sh")
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn messages_stream(next: &Move, conversation: &Conversation, body: &Value) -> String {
    let usage = json!({"input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 1});
    let message = json!({"id": format!("msg_{}", conversation.tool_results), "type": "message",
        "role": "assistant", "model": body["model"], "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage});
    let (block, delta, stop) = match next {
        Move::Run(command) => {
            let (name, arguments) = call(command, conversation);
            let id = format!("toolu_{:04}", conversation.tool_results);
            (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments}),
                "tool_use",
            )
        }
        Move::Say(text) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
        Move::Fail(..) | Move::Cut | Move::Hang => return String::new(),
    };
    [
        ("message_start", json!({"type": "message_start", "message": message})),
        ("content_block_start", json!({"type": "content_block_start", "index": 0, "content_block": block})),
        ("content_block_delta", json!({"type": "content_block_delta", "index": 0, "delta": delta})),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
                "usage": {"output_tokens": 20}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ]
    .iter()
    .map(|(name, data)| event(name, data))
    .collect()
}

fn output_item(next: &Move, conversation: &Conversation) -> Value {
    match next {
        Move::Run(command) => {
            let (name, arguments) = call(command, conversation);
            json!({"type": "function_call", "id": "fc_1", "name": name, "arguments": arguments,
                "call_id": format!("call_{}", conversation.tool_results)})
        }
        Move::Say(text) => json!({"type": "message", "id": "m_1", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Move::Fail(..) | Move::Cut | Move::Hang => Value::Null,
    }
}

fn responses_stream(next: &Move, conversation: &Conversation) -> String {
    let usage = json!({"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1020});
    let item = output_item(next, conversation);
    [
        ("response.created", json!({"type": "response.created", "response": {"id": "resp_1"}})),
        (
            "response.output_item.added",
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        ),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ),
        (
            "response.completed",
            json!({"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}),
        ),
    ]
    .iter()
    .map(|(name, data)| event(name, data))
    .collect()
}

fn chat_stream(next: &Move, conversation: &Conversation, body: &Value) -> String {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let data = json!({"id": "chat_1", "object": "chat.completion.chunk", "created": 1,
            "model": body["model"], "choices": [choice]});
        format!("data: {data}\n\n")
    };
    let (delta, finish) = match next {
        Move::Run(command) => {
            let (name, arguments) = call(command, conversation);
            let call = json!({"index": 0, "id": format!("call_{}", conversation.tool_results),
                "type": "function", "function": {"name": name, "arguments": arguments}});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
        Move::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Move::Fail(..) | Move::Cut | Move::Hang => return String::new(),
    };
    let usage = json!({"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body["model"],
        "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}});
    format!(
        "{}{}data: {usage}\n\ndata: [DONE]\n\n",
        chunk(delta, Value::Null),
        chunk(json!({}), json!(finish))
    )
}

fn contents_answer(next: &Move, conversation: &Conversation) -> Value {
    let part = match next {
        Move::Run(command) => {
            let (name, arguments) = call(command, conversation);
            let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
            json!({"functionCall": {"name": name, "args": arguments}})
        }
        Move::Say(text) => json!({ "text": text }),
        Move::Fail(..) | Move::Cut | Move::Hang => return Value::Null,
    };
    json!({"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [part]}}],
        "modelVersion": "gemini-2.5-pro",
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020}})
}
