import type { SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";
import type { Row } from "../session/value/transcript.ts";
import { readTranscript } from "./read-session.ts";

/** Which models have answered on the active path of a session. */
export interface AnsweredBy {
  /** Whether any model except the offline model has answered, including one that the log does not name. */
  readonly byAnother: boolean;
  /** The model to continue with, as `provider/id`; null if none has answered, or the log does not name the one that has. */
  readonly model: string | null;
}

/**
 * Finds out which models have answered on the active path of a session. The offline model is returned only if no other has
 * answered, so that it does not become the default of a session that used another model. Reads the context if the head is
 * not enough.
 */
export async function answeredBy(store: SessionStore, head: SessionHead): Promise<AnsweredBy> {
  const { model, turnCount } = head.path;
  if (model !== null && !OFFLINE.has(model.provider))
    return { byAnother: true, model: `${model.provider}/${model.modelId}` };
  const byAnother = turnCount > 0 && (await readTranscript(store, head)).transcript.rows.some(isByAnother);
  return { byAnother, model: model === null || byAnother ? null : "offline/offline" };
}

/** The providers of answers that do not come from a real model: the offline model, and the sample sessions. */
const OFFLINE: ReadonlySet<string | undefined> = new Set(["offline", "sample"]);

function isByAnother({ message }: Row): boolean {
  return message.role === "assistant" && !OFFLINE.has(message.provider);
}
