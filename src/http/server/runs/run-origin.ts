import { GROUP_KEY } from "../../../group/group-progress.ts";
import type { JsonObject } from "../../../internal/json.ts";
import { inheritedCount, type SessionHead } from "../../../session/fold.ts";
import type { SandboxPlacement } from "../../../session/header.ts";
import type { Message } from "../../../session/message.ts";
import { Session } from "../../../session/session.ts";
import type { SessionStore } from "../../../session/store.ts";
import { rowOf, Transcript } from "../../../session/transcript.ts";

/** The key under which a run's input names who answers it, in its metadata, so that another process can go on with it. */
export const RUN_KEY = "skein.run";

const ENTRIES_MAX = 10_000;

/** Who was asked in a run; null where the log does not say. */
export interface RunOrigin {
  readonly agent: string | null;
  /** As `provider/id`, where the run was to use another than the agent's own. */
  readonly model: string | null;
  /** Whether a group was asked, and which. */
  readonly group: { readonly name: string | null } | null;
}

/**
 * What a person says to an agent, with who is asked, so that another process can go on with the run. It has the session's
 * place, which a run on a session that says nothing yet takes from its input alone.
 */
export function inputOf(
  { transcript }: Session,
  asked: { readonly agent: string; readonly model: string | null },
  sandbox: SandboxPlacement | null,
): Session {
  const metadata = { [RUN_KEY]: { agent: asked.agent, ...(asked.model === null ? {} : { model: asked.model }) } };
  const rows = transcript.rows.map(({ id, message }) => rowOf({ id, message: { ...message, metadata } as Message }));
  return Session.of(Transcript.of(rows), { sandbox });
}

/**
 * Who was asked in the latest run that a session itself has started. Reads the log backward, as far as the run's input;
 * whom others asked, before a fork or in a file that was imported, is not looked at.
 */
export async function readRunOrigin(store: SessionStore, { header }: SessionHead): Promise<RunOrigin> {
  const own = { after: inheritedCount(header) - 1, reverse: true, limit: ENTRIES_MAX };
  for await (const entry of store.read(header.id, own)) {
    if (entry.type !== "message" || entry.message.role !== "user") continue;
    const { metadata = {} } = entry.message;
    const asked = objectOf(metadata[RUN_KEY]);
    const group = textOf(asked.group);
    const isGroup = group !== null || objectOf(metadata[GROUP_KEY]).kind === "message";
    if (!isGroup && textOf(asked.agent) === null) continue;
    return { agent: textOf(asked.agent), model: textOf(asked.model), group: isGroup ? { name: group } : null };
  }
  return { agent: null, model: null, group: null };
}

function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
