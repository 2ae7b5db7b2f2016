import { createHash } from "node:crypto";
import type { RunEvent } from "../agent/run-event.ts";
import type { GroupEvent } from "../group/group-event.ts";
import { isRecorded } from "../session/log/run-event.ts";
import type { Listening, RunQueue } from "./run-queue.ts";

/** The position of an event of a run: an entry of the log, and how many live events were emitted after that entry. */
export interface EventPosition {
  readonly seq: number;
  readonly delta: number;
}

/**
 * A message about a run on the queue: a live event with its position; or, without an event, that the log has come to `seq`
 * and all earlier live events were published.
 */
export interface LiveNotice extends EventPosition {
  /** The position of the log at which the publishing worker began; a worker that continues the run has a later one. */
  readonly since: number;
  /** How many live events this worker has published of the run, including this one. */
  readonly count: number;
  readonly event?: RunEvent | GroupEvent;
}

/** An event that is not computed from an entry. */
export interface LiveEvent extends LiveNotice {
  readonly event: RunEvent | GroupEvent;
}

/** A run by its session's id and its own. */
export interface RunKey {
  readonly sessionId: string;
  readonly runId: string;
}

/** The topic on which viewers announce which runs they follow. Its name is from an earlier version. */
export const VIEWERS_TOPIC = "lookers";

/** How long an announcement of a viewer is valid. */
export const VIEWER_MS = 25_000;

/** An announcement of viewers. */
export interface Viewers {
  /** The topics of the runs that they follow. */
  readonly topics: readonly string[];
  /** True if they have just joined and need the earlier live events. */
  readonly joined: boolean;
}

/** The topic of a run's live events: a hash, since ids may contain characters that a topic may not. */
export function topicOf({ sessionId, runId }: RunKey): string {
  return `run.${createHash("sha256")
    .update(JSON.stringify([sessionId, runId]))
    .digest("hex")
    .slice(0, 32)}`;
}

/** Publishes a value as JSON. Its delivery is not guaranteed. */
export function publishJson(queue: RunQueue, topic: string, value: unknown): void {
  void queue.publish(topic, Buffer.from(JSON.stringify(value))).catch(() => {});
}

/** Receives values that are published as JSON. `read` returns null for invalid ones: anyone with access to the queue can publish. */
export async function subscribeJson<Value>(
  queue: RunQueue,
  topic: string,
  read: (value: unknown) => Value | null,
  receive: (value: Value) => void,
): Promise<Listening> {
  return queue.subscribe(topic, (data) => {
    const value = read(parsed(data));
    if (value !== null) receive(value);
  });
}

function parsed(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data).toString());
  } catch {
    return undefined;
  }
}

/** The fields of an object; null for any other value. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
}

/** Whether a value is a list of texts. */
export function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

/**
 * Reads a notice; null for an invalid one. Anyone with access to the queue can publish, so recorded events (questions,
 * results, the end) are refused: they come from the log.
 */
export function readNotice(value: unknown): LiveNotice | null {
  const { seq, delta, since, count, event } = fieldsOf(value) ?? {};
  if (![seq, delta, since, count].every(Number.isSafeInteger)) return null;
  if (event !== undefined && !isLiveEvent(fieldsOf(event))) return null;
  return { seq, delta, since, count, ...(event === undefined ? {} : { event }) } as LiveNotice;
}

/** Reads an announcement of viewers; null for an invalid one. */
export function readViewers(value: unknown): Viewers | null {
  const { topics, joined } = fieldsOf(value) ?? {};
  return areTexts(topics) ? { topics, joined: joined === true } : null;
}

function isLiveEvent(event: Readonly<Record<string, unknown>> | null): boolean {
  return event !== null && typeof event["type"] === "string" && !isRecorded(event as unknown as LiveEvent["event"]);
}
