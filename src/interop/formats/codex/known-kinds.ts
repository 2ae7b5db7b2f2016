import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import { isFields } from "../foreign-values.ts";

/** Line types that Codex writes. */
const LINES: ReadonlySet<unknown> = new Set([
  "compacted",
  "event_msg",
  "inter_agent_communication",
  "response_item",
  "session_meta",
  "session_state",
  "token_usage_record",
  "turn_context",
  "world_state",
]);

/** Item types that Codex writes. */
const ITEMS: ReadonlySet<unknown> = new Set([
  "agent_message",
  "compaction",
  "compaction_summary",
  "compaction_trigger",
  "context_compaction",
  "custom_tool_call",
  "custom_tool_call_output",
  "function_call",
  "function_call_output",
  "ghost_snapshot",
  "image_generation_call",
  "local_shell_call",
  "message",
  "other",
  "reasoning",
  "tool_search_call",
  "tool_search_output",
  "web_search_call",
]);

/** Event types that Codex writes. */
const EVENTS: ReadonlySet<unknown> = new Set([
  "agent_message",
  "agent_message_content_delta",
  "agent_message_delta",
  "agent_reasoning",
  "agent_reasoning_delta",
  "agent_reasoning_raw_content",
  "agent_reasoning_raw_content_delta",
  "agent_reasoning_section_break",
  "apply_patch_approval_request",
  "background_event",
  "collab_agent_interaction_begin",
  "collab_agent_interaction_end",
  "collab_agent_spawn_begin",
  "collab_agent_spawn_end",
  "collab_close_begin",
  "collab_close_end",
  "collab_resume_begin",
  "collab_resume_end",
  "collab_waiting_begin",
  "collab_waiting_end",
  "context_compacted",
  "deprecation_notice",
  "dynamic_tool_call_request",
  "dynamic_tool_call_response",
  "elicitation_request",
  "entered_review_mode",
  "error",
  "exec_approval_request",
  "exec_command_begin",
  "exec_command_end",
  "exec_command_output_delta",
  "exited_review_mode",
  "get_history_entry_response",
  "hook_completed",
  "hook_started",
  "image_generation_begin",
  "image_generation_end",
  "item_completed",
  "item_started",
  "list_custom_prompts_response",
  "list_remote_skills_response",
  "list_skills_response",
  "mcp_list_tools_response",
  "mcp_startup_complete",
  "mcp_startup_update",
  "mcp_tool_call_begin",
  "mcp_tool_call_end",
  "model_reroute",
  "patch_apply_begin",
  "patch_apply_end",
  "plan_delta",
  "plan_update",
  "raw_response_item",
  "realtime_conversation_closed",
  "realtime_conversation_realtime",
  "realtime_conversation_started",
  "reasoning_content_delta",
  "reasoning_raw_content_delta",
  "remote_skill_downloaded",
  "request_permissions",
  "request_user_input",
  "session_configured",
  "shutdown_complete",
  "skills_update_available",
  "stream_error",
  "sub_agent_activity",
  "task_complete",
  "task_started",
  "terminal_interaction",
  "thread_goal_updated",
  "thread_name_updated",
  "thread_rolled_back",
  "thread_settings_applied",
  "token_count",
  "turn_aborted",
  "turn_complete",
  "turn_diff",
  "turn_started",
  "undo_completed",
  "undo_started",
  "user_message",
  "view_image_tool_call",
  "warning",
  "web_search_begin",
  "web_search_end",
]);

/** The kind of a line if it is unknown; undefined for known kinds. */
export function unknownKindOf(value: JsonValue): string | undefined {
  if (!isFields(value)) return "list";
  const { type } = value;
  // Early files hold the state of the program in lines without a type.
  if (type === undefined && value.record_type === "state") return undefined;
  if (!LINES.has(type)) return typeof type === "string" ? type : "";
  const payload: JsonObject = isFields(value.payload) ? value.payload : {};
  const known = type === "response_item" ? ITEMS : type === "event_msg" ? EVENTS : null;
  if (known === null || known.has(payload.type)) return undefined;
  return `${String(type)}/${typeof payload.type === "string" ? payload.type : ""}`;
}
