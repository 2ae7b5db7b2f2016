import type { Approval, RunEvent } from "../../index.ts";

/** What a chat says. Texts are as they came: whoever shows them takes out what could steer a terminal. */
export type ChatOutput =
  /** Which session the next turn goes to. */
  | { readonly type: "session-opened"; readonly sessionId: string; readonly model: string }
  /** The chat's own words, on one line or several. */
  | { readonly type: "notice"; readonly text: string }
  /** Why something was not done. */
  | { readonly type: "problem"; readonly text: string }
  /** What happens in the turn that is under way. */
  | { readonly type: "run-event"; readonly event: RunEvent }
  /** What a parked run asks, which goes on after it; whoever is there decides before they ask for the next output. */
  | { readonly type: "question"; readonly approval: Approval }
  /** The user wants to leave. */
  | { readonly type: "chat-ended" };

/** The chat's own words. */
export function notice(text: string): ChatOutput {
  return { type: "notice", text };
}
