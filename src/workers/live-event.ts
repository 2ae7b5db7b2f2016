import { createHash } from "node:crypto";
import type { RunEvent } from "../agent/run-event.ts";
import type { GroupEvent } from "../group/group-event.ts";
import type { Listening, RunBell } from "./run-bell.ts";

/** Where an event is among those of a run: at an entry of the log, and after so many that were told live since. */
export interface EventPosition {
  readonly seq: number;
  readonly delta: number;
}

/** An event that no entry makes, and where it belongs. */
export interface LiveEvent extends EventPosition {
  readonly event: RunEvent | GroupEvent;
}

/** A run by its session's id and its own. */
export interface RunKey {
  readonly sessionId: string;
  readonly runId: string;
}

/** Where those who look on say which runs they follow. */
export const LOOKERS_TOPIC = "lookers";

/** How long who looks on counts as being there without saying so again. */
export const LOOKER_MS = 25_000;

/** What those who look on say. */
export interface Lookers {
  /** The topics of the runs that they follow. */
  readonly topics: readonly string[];
  /** Whether they have just come, and want what was told before. */
  readonly joined: boolean;
}

/** Where the live events of a run are published: ids may hold anything, and a topic may not. */
export function topicOf({ sessionId, runId }: RunKey): string {
  return `run.${createHash("sha256")
    .update(JSON.stringify([sessionId, runId]))
    .digest("hex")
    .slice(0, 32)}`;
}

/** Publishes a value as JSON. Nobody relies on it to arrive. */
export function publishJson(bell: RunBell, topic: string, value: unknown): void {
  void bell.publish(topic, Buffer.from(JSON.stringify(value))).catch(() => {});
}

/** Hears values that are published as JSON. */
export async function subscribeJson<Value>(
  bell: RunBell,
  topic: string,
  hear: (value: Value) => void,
): Promise<Listening> {
  return bell.subscribe(topic, (data) => hear(JSON.parse(Buffer.from(data).toString()) as Value));
}
