import { GROUP_KEY } from "../group/group-progress.ts";
import type { JsonObject } from "../internal/json.ts";
import { inheritedCount, type SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";

/** The key under which the input of a run names who answers it, in logs of the first version. */
const RUN_KEY = "skein.run";
const ENTRIES_MAX = 10_000;

/** Who was asked in a run that has no request; null where the log does not say, and an empty group for one without a name. */
export interface RunOrigin {
  readonly agent: string | null;
  readonly group: string | null;
}

/**
 * Who was asked in the latest run that a session itself has started. Reads the log backward, as far as the run's input;
 * whom others asked, before a fork or in a file that was imported, is not looked at.
 */
export async function readRunOrigin(store: SessionStore, { header }: SessionHead): Promise<RunOrigin> {
  const own = { after: inheritedCount(header) - 1, reverse: true, limit: ENTRIES_MAX };
  for await (const entry of store.read(header.id, own)) {
    if (entry.type !== "message" || entry.message.role !== "user" || entry.inherited === true) continue;
    const { metadata = {} } = entry.message;
    const asked = objectOf(metadata[RUN_KEY]);
    const [agent, group] = [textOf(asked.agent), textOf(asked.group)];
    if (group !== null || objectOf(metadata[GROUP_KEY]).kind === "message") return { agent: null, group: group ?? "" };
    if (agent !== null) return { agent, group: null };
  }
  return { agent: null, group: null };
}

function objectOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
