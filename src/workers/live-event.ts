import { createHash } from "node:crypto";
import type { RunEvent } from "../agent/run-event.ts";
import type { GroupEvent } from "../group/group-event.ts";
import { isRecorded } from "../session/log/run-event.ts";
import type { Listening, RunQueue } from "./run-queue.ts";

/** Where an event is among those of a run: at an entry of the log, and after so many that were told live since. */
export interface EventPosition {
  readonly seq: number;
  readonly delta: number;
}

/**
 * What is told live about a run: an event that no entry makes, and where it belongs; or, without one, that the log has come
 * to `seq`, and all that was told before that was published.
 */
export interface LiveNotice extends EventPosition {
  /** Where the log was when whoever tells began with the run; one that goes on with it later began further on. */
  readonly since: number;
  /** How many events were told so far, with this one. */
  readonly count: number;
  readonly event?: RunEvent | GroupEvent;
}

/** An event that no entry makes. */
export interface LiveEvent extends LiveNotice {
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
export function publishJson(queue: RunQueue, topic: string, value: unknown): void {
  void queue.publish(topic, Buffer.from(JSON.stringify(value))).catch(() => {});
}

/** Hears values that are published as JSON, as far as `read` makes something of them: whoever reaches the queue can publish. */
export async function subscribeJson<Value>(
  queue: RunQueue,
  topic: string,
  read: (value: unknown) => Value | null,
  hear: (value: Value) => void,
): Promise<Listening> {
  return queue.subscribe(topic, (data) => {
    const value = read(parsed(data));
    if (value !== null) hear(value);
  });
}

function parsed(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data).toString());
  } catch {
    return undefined;
  }
}

/** What was published as an object, else null. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
}

/** Whether a value is a list of texts. */
export function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

/**
 * What was told live about a run, else null. Whoever reaches the queue can publish, so that nothing is taken here that the
 * log tells: no question, no result and no end.
 */
export function readNotice(value: unknown): LiveNotice | null {
  const { seq, delta, since, count, event } = fieldsOf(value) ?? {};
  if (![seq, delta, since, count].every(Number.isSafeInteger)) return null;
  if (event !== undefined && !isToldLive(fieldsOf(event))) return null;
  return { seq, delta, since, count, ...(event === undefined ? {} : { event }) } as LiveNotice;
}

/** Who looks on, else null. */
export function readLookers(value: unknown): Lookers | null {
  const { topics, joined } = fieldsOf(value) ?? {};
  return areTexts(topics) ? { topics, joined: joined === true } : null;
}

function isToldLive(event: Readonly<Record<string, unknown>> | null): boolean {
  return event !== null && typeof event["type"] === "string" && !isRecorded(event as unknown as LiveEvent["event"]);
}
