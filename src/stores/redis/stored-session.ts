import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionStatus } from "../../session/entry.ts";
import type { PathSummary, SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type OpenRun, readOpenRuns, type RunsIndex, runsIndexOf } from "../../session/open-runs.ts";
import type { SettingsNode } from "../../session/settings.ts";
import {
  decodePath,
  type EntryState,
  type HeadPlace,
  pathState,
  sameUsage,
  settingsIn,
  settingsState,
} from "../rows/entry-state.ts";
import type { RedisReply } from "./redis-client.ts";
import { readSegments, type Segment, segmentsOf } from "./segments.ts";

/** A session as it stood at one moment. What it says of the log is never wrong, only behind. */
export interface StoredSession extends HeadPlace {
  readonly stamp: Stamp;
  /** Whether the index knows that this generation is being written to. */
  readonly marked: boolean;
  readonly deletedAt: string | null;
  readonly segments: readonly Segment[];
}

/** What changes with every write to a session. */
export interface Stamp {
  /** Tells the session from every other that has, had or will have the same id. */
  readonly uid: string;
  /** How often it was written to. */
  readonly rev: number;
  /** See session-index.ts. */
  readonly gen: number;
  /** All of it as it is stored, with a name of the last write: where a server lost writes, others may have the same count. */
  readonly text: string;
}

/** What is read of a head when only its place in the index matters. */
export interface HeadTimes {
  readonly modifiedAt: string;
  readonly updatedAt: string;
  /** When it was written, by the writer's clock. */
  readonly writtenMs: number;
}

/** What every append changes of a head, in the order it is stored in. */
type HeadText = readonly [
  gen: number,
  writtenMs: number,
  version: number,
  updatedAt: string,
  modifiedAt: string,
  leafId: string | null,
  leafSeq: number | null,
  factsSeq: number | null,
  path: EntryState,
  counts: Pick<SessionHead, "messageCount" | "usage" | "cost" | "closed"> | 0,
];

/** What few appends change of a head. */
type HeadFacts = Pick<SessionHead, "status" | "statusReason" | "name" | "firstMessage" | "undone"> & {
  readonly openRuns: readonly (OpenRun | string)[];
};

// Together they name a write as no other is named, and cost an append less than a random name does.
const WRITER = Math.random().toString(36).slice(2);
let writes = 0;

/** The stamp of the next write to a session, or of its first one. */
export function nextStamp({ uid, rev, gen }: Pick<Stamp, "uid" | "rev" | "gen">): Stamp {
  return { uid, rev: rev + 1, gen, text: `${uid} ${rev + 1} ${gen} ${WRITER}.${++writes}` };
}

/** The stamp that a text tells of. */
export function readStamp(text: string): Stamp {
  const [uid = "", rev, gen] = text.split(" ");
  return { uid, rev: Number(rev), gen: Number(gen), text };
}

/** A head as it is stored, written in a generation. What seldom changes, or may be large, is stored apart. */
export function writeHead({ head, leafSeq, factsSeq }: HeadPlace, gen: number): string {
  const { path, messageCount, usage, cost, closed } = head;
  const derived = messageCount === path.turnCount && cost === path.cost && !closed && sameUsage(usage, path.usage);
  const text: HeadText = [
    ...([gen, Date.now(), head.version, head.updatedAt, head.modifiedAt, head.leafId, leafSeq, factsSeq] as const),
    { at: "", ...pathState(path, leafSeq ?? 0) },
    derived ? 0 : { messageCount, usage, cost, closed },
  ];
  return JSON.stringify(text);
}

/** The part of a head that few appends change, as it is stored. */
export function writeFacts({ status, statusReason, name, firstMessage, openRuns, undone }: SessionHead): string {
  const facts: HeadFacts = { status, statusReason, name, firstMessage, openRuns, undone };
  return JSON.stringify(facts);
}

/** The times that a head's text tells of. */
export function readTimes(text: string): HeadTimes {
  const [, writtenMs, , updatedAt, modifiedAt] = JSON.parse(text) as HeadText;
  return { writtenMs, updatedAt, modifiedAt };
}

/** What a head's facts tell of for its place in the index. */
export function readIndexed(text: string): { readonly status: SessionStatus; readonly runs?: RunsIndex } {
  const { status, openRuns } = JSON.parse(text) as HeadFacts;
  return openRuns.length === 0 ? { status } : { status, runs: runsIndexOf(readOpenRuns(openRuns)) };
}

/** Where the settings of a head stand: -1 for those before the first. */
export function settingsOf({ path }: SessionHead): string {
  return String(path.settings?.seq ?? -1);
}

/** The settings of a head, as they are stored. */
export function writeSettings({ path }: SessionHead): string {
  return JSON.stringify(path.settings === null ? null : settingsState(path.settings));
}

/** What `LOAD_SESSION` answers, given what was known; null when there is no such session. */
export function readSession(
  id: string,
  reply: readonly RedisReply[],
  known: StoredSession | undefined,
): StoredSession | null {
  const [kind, changing, fixed, set] = reply as [string, string[], string[] | null, string | null];
  if (kind === "none") return null;
  if (kind === "same") return known as StoredSession;
  const [k = "", h = "", ff = "", ss = "", del = "", deletedIn] = changing;
  const stamp = readStamp(k);
  const base = fixed === null ? (known as StoredSession) : readFixed(id, stamp.uid, fixed);
  const [gen, , version, updatedAt, modifiedAt, leafId, leafSeq, factsSeq, state, counts] = JSON.parse(h) as HeadText;
  const path = decodePath(state, leafSeq ?? 0, () => readSettings(Number(ss), set, known)) as PathSummary;
  const { turnCount: messageCount, usage, cost } = path;
  const facts = JSON.parse(ff) as HeadFacts;
  const head: SessionHead = {
    header: "head" in base ? base.head.header : base.header,
    ...{ version, updatedAt, modifiedAt, leafId, path },
    ...facts,
    openRuns: readOpenRuns(facts.openRuns),
    ...(counts === 0 ? { messageCount, usage, cost, closed: false } : counts),
  };
  return {
    stamp,
    marked: gen === stamp.gen || deletedIn === String(stamp.gen),
    deletedAt: del === "" ? null : del,
    segments: base.segments,
    head: freezeDeep(head),
    leafSeq,
    factsSeq,
  };
}

function readFixed(
  id: string,
  uid: string,
  [hd = "", sg = ""]: readonly string[],
): { readonly header: SessionHeader; readonly segments: readonly Segment[] } {
  return { header: freezeDeep(JSON.parse(hd) as SessionHeader), segments: segmentsOf(readSegments(sg), id, uid) };
}

function readSettings(seq: number, text: string | null, known: StoredSession | undefined): SettingsNode {
  if (text === null) return (known as StoredSession).head.path.settings as SettingsNode;
  return settingsIn({ at: "", settings: JSON.parse(text) as EntryState["settings"] & object }, seq);
}
