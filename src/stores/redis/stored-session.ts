import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionStatus } from "../../session/entry.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, type Settings } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type HeadPlace, settingsIn, settingsSeq } from "../sqlite/entry-state.ts";
import type { RedisReply } from "./redis-client.ts";
import { readSegments, type Segment, segmentsOf } from "./segments.ts";

/** A session as it stood at one moment. What it says of the log is never wrong, only behind. */
export interface StoredSession extends HeadPlace {
  /** Tells it from every other session that has, had or will have the same id. */
  readonly uid: string;
  /** How often it was written to. */
  readonly rev: string;
  readonly gen: string;
  /** Whether the index knows that this generation is being written to. */
  readonly marked: boolean;
  readonly deletedAt: string | null;
  readonly segments: readonly Segment[];
}

/** The fields of a session's hash that change with its head. */
export interface HeadFields {
  readonly h: string;
  readonly m: string;
  readonly u: string;
  readonly st: string;
  readonly ss: string;
}

type HeadText = Pick<
  SessionHead,
  | "leafId"
  | "statusReason"
  | "name"
  | "messageCount"
  | "firstMessage"
  | "usage"
  | "cost"
  | "openRuns"
  | "undone"
  | "closed"
> & {
  readonly path: Omit<PathSummary, "settings">;
  readonly leafSeq: number | null;
  readonly factsSeq: number | null;
};

/** What is written of a head. The settings, which may be large, are written only when they change. */
export function headFields({ head, leafSeq, factsSeq }: HeadPlace): HeadFields {
  const { leafId, statusReason, name, messageCount, firstMessage, usage, cost, openRuns, undone, closed } = head;
  const { settings, ...path } = head.path;
  const text: HeadText = {
    leafId,
    statusReason,
    name,
    messageCount,
    firstMessage,
    usage,
    cost,
    openRuns,
    undone,
    closed,
    path,
    leafSeq,
    factsSeq,
  };
  return {
    h: JSON.stringify(text),
    m: head.modifiedAt,
    u: head.updatedAt,
    st: head.status,
    ss: String(settingsSeq(settings) ?? -1),
  };
}

/** What `LOAD_SESSION` answers, given what was known; null when there is no such session. */
export function readSession(
  id: string,
  reply: readonly RedisReply[],
  known: StoredSession | undefined,
): StoredSession | null {
  const [kind, ...rest] = reply;
  if (kind === "none") return null;
  if (kind === "same") return sameSession(known as StoredSession, rest as [string, string]);
  const [names, changing, fixed, set] = rest as [string[], string[], string[] | null, string | null];
  const [uid = "", rev = "", gen = "", marked = "", ss = ""] = names;
  const [v = "", del = "", h = "", m = "", u = "", st = ""] = changing;
  const base = fixed === null ? (known as StoredSession) : readFixed(id, uid, fixed);
  const header = "head" in base ? base.head.header : base.header;
  const { path, leafSeq, factsSeq, ...parts } = JSON.parse(h) as HeadText;
  const settings = readSettings(Number(ss), set, known);
  const head: SessionHead = {
    header,
    version: Number(v),
    modifiedAt: m,
    updatedAt: u,
    status: st as SessionStatus,
    ...parts,
    path: { ...path, settings },
  };
  const deletedAt = del === "" ? null : del;
  const { segments } = base;
  return { uid, rev, gen, marked: marked === gen, deletedAt, segments, head: freezeDeep(head), leafSeq, factsSeq };
}

/** A session whose `gen` and mark, and nothing else, are as the server says. */
function sameSession(known: StoredSession, [gen, marked]: readonly [string, string]): StoredSession {
  if (known.gen === gen && known.marked === (marked === gen)) return known;
  return { ...known, gen, marked: marked === gen };
}

function readFixed(
  id: string,
  uid: string,
  [hd = "", sg = ""]: readonly string[],
): { readonly header: SessionHeader; readonly segments: readonly Segment[] } {
  return { header: freezeDeep(JSON.parse(hd) as SessionHeader), segments: segmentsOf(readSegments(sg), id, uid) };
}

function readSettings(seq: number, text: string | null, known: StoredSession | undefined): Settings {
  if (seq < 0) return EMPTY_PATH.settings;
  if (text === null) return (known as StoredSession).head.path.settings;
  return settingsIn({ at: "", settings: JSON.parse(text) as Settings }, seq);
}
