import type { SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";
import type { Row } from "../session/value/transcript.ts";
import { readTranscript } from "./read-session.ts";

/** What has answered on the active path of a session. */
export interface AnsweredBy {
  /** Whether anything has answered but the offline model, be it a model that the log does not name. */
  readonly byAnother: boolean;
  /** The model to go on with, as `provider/id`; null where nothing has answered, or something that only a person can name. */
  readonly model: string | null;
}

/**
 * What has answered on the active path of a session. The offline model is named only where nothing else has answered, so
 * that nobody goes on with it elsewhere by default. Costs what the context contains where the head does not tell.
 */
export async function answeredBy(store: SessionStore, head: SessionHead): Promise<AnsweredBy> {
  const { model, turnCount } = head.path;
  if (model !== null && !OFFLINE.has(model.provider))
    return { byAnother: true, model: `${model.provider}/${model.modelId}` };
  const byAnother = turnCount > 0 && (await readTranscript(store, head)).transcript.rows.some(isAnothers);
  return { byAnother, model: model === null || byAnother ? null : "offline/offline" };
}

/** The providers of answers that no model gave: those of the offline model, and those of the sample sessions. */
const OFFLINE: ReadonlySet<string | undefined> = new Set(["offline", "sample"]);

function isAnothers({ message }: Row): boolean {
  return message.role === "assistant" && !OFFLINE.has(message.provider);
}
