import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { SessionStatus } from "../../session/entry.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, type Settings } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type HeadPlace, settingsIn, settingsSeq } from "../entry-state.ts";
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
  /** Of the last write; where a server lost writes, others may have the same count. */
  readonly nonce: string;
}

/** What is written of a head, and of the moment it was written. */
export interface HeadText
  extends Omit<SessionHead, "header" | "path" | "version" | "updatedAt" | "modifiedAt" | "status"> {
  readonly v: number;
  readonly u: string;
  readonly m: string;
  readonly st: SessionStatus;
  readonly path: Omit<PathSummary, "settings">;
  readonly leafSeq: number | null;
  readonly factsSeq: number | null;
  /** The generation that it was written in. */
  readonly g: number;
  /** When, by the writer's clock. */
  readonly at: number;
}

/** A stamp as it is stored. */
export function writeStamp({ uid, rev, gen, nonce }: Stamp): string {
  return `${uid} ${rev} ${gen} ${nonce}`;
}

/** The stamp of the next write to a session, or of its first one. */
export function nextStamp({ uid, rev, gen }: Pick<Stamp, "uid" | "rev" | "gen">): Stamp {
  return { uid, rev: rev + 1, gen, nonce: Math.random().toString(36).slice(2) };
}

/** The stamp that a text tells of. */
export function readStamp(text: string): Stamp {
  const [uid = "", rev, gen, nonce = ""] = text.split(" ");
  return { uid, rev: Number(rev), gen: Number(gen), nonce };
}

/** A head as it is stored, written in a generation. The settings, which may be large, are stored apart. */
export function writeHead({ head, leafSeq, factsSeq }: HeadPlace, g: number): string {
  const { path } = head;
  const text: HeadText = {
    v: head.version,
    u: head.updatedAt,
    m: head.modifiedAt,
    st: head.status,
    leafId: head.leafId,
    statusReason: head.statusReason,
    name: head.name,
    messageCount: head.messageCount,
    firstMessage: head.firstMessage,
    usage: head.usage,
    cost: head.cost,
    openRuns: head.openRuns,
    undone: head.undone,
    closed: head.closed,
    path: {
      depth: path.depth,
      turnCount: path.turnCount,
      usage: path.usage,
      cost: path.cost,
      compactionId: path.compactionId,
      model: path.model,
      thinkingLevel: path.thinkingLevel,
    },
    leafSeq,
    factsSeq,
    g,
    at: Date.now(),
  };
  return JSON.stringify(text);
}

/** Where the settings of a head were made: -1 for those before the first. */
export function settingsOf({ path }: SessionHead): string {
  return String(settingsSeq(path.settings) ?? -1);
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
  const [k = "", h = "", ss = "", del = "", deletedIn] = changing;
  const stamp = readStamp(k);
  const base = fixed === null ? (known as StoredSession) : readFixed(id, stamp.uid, fixed);
  const { v, u, m, st, path, leafSeq, factsSeq, g, at: _, ...parts } = JSON.parse(h) as HeadText;
  const head: SessionHead = {
    header: "head" in base ? base.head.header : base.header,
    version: v,
    updatedAt: u,
    modifiedAt: m,
    status: st,
    ...parts,
    path: { ...path, settings: readSettings(Number(ss), set, known) },
  };
  return {
    stamp,
    marked: g === stamp.gen || deletedIn === String(stamp.gen),
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

function readSettings(seq: number, text: string | null, known: StoredSession | undefined): Settings {
  if (seq < 0) return EMPTY_PATH.settings;
  if (text === null) return (known as StoredSession).head.path.settings;
  return settingsIn({ at: "", settings: JSON.parse(text) as Settings }, seq);
}
