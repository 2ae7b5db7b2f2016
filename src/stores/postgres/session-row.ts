import { freezeDeep } from "../../internal/freeze-deep.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, type Settings } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type HeadPlace, settingsIn, settingsPlace } from "../sqlite/entry-state.ts";
import { type Segment, segmentsAfter } from "../sqlite/segments.ts";
import { fromJsonb } from "./jsonb-text.ts";

/** The columns that make a session, as `sessionOf` reads them. */
export const SESSION_COLUMNS =
  "key, id, version, updated_at, modified_at, origin_version, segments, header::text AS header, head, settings";

/** A session's row, of `SESSION_COLUMNS`. */
export interface SessionRow {
  readonly key: string;
  readonly id: string;
  readonly version: string;
  readonly updated_at: string;
  readonly modified_at: string;
  readonly origin_version: string;
  readonly segments: string;
  readonly header: string;
  readonly head: string;
  readonly settings: string | null;
}

/** A session as it stood at one version. Its log only grows, so nothing of this is ever wrong, only behind. */
export interface LoadedSession extends HeadPlace {
  readonly key: number;
  /** The parts of its log; the last is its own. */
  readonly segments: readonly Segment[];
}

/** What a row's `head` holds: the head, but for what has a column of its own. */
interface HeadRecord extends Omit<SessionHead, "header" | "version" | "updatedAt" | "modifiedAt" | "path"> {
  readonly path: Omit<PathSummary, "settings">;
  readonly leafSeq: number | null;
  readonly factsSeq: number | null;
  /** The entry that holds the settings, or -1. */
  readonly settingsSeq: number;
}

/** The text of a row's `head`. */
export function encodeHead({ head, leafSeq, factsSeq }: HeadPlace): string {
  const { header: _, version: __, updatedAt: ___, modifiedAt: ____, path, ...rest } = head;
  const { settings, ...shortPath } = path;
  const settingsSeq = settingsPlace(settings) ?? -1;
  const record: HeadRecord = { ...rest, path: shortPath, leafSeq, factsSeq, settingsSeq };
  return JSON.stringify(record);
}

/** The text of a row's `settings`, null where none were ever set. */
export function encodeSettings(settings: Settings): string | null {
  return settings === EMPTY_PATH.settings ? null : JSON.stringify(settings);
}

/** The session of a row; what is `known` of it is taken over where it still holds. */
export function sessionOf(row: SessionRow, known: LoadedSession | undefined): LoadedSession {
  const key = Number(row.key);
  const version = Number(row.version);
  const same = known?.key === key ? known : undefined;
  if (same?.head.version === version) return same;
  const header = same?.head.header ?? (freezeDeep(fromJsonb(row.header)) as SessionHeader);
  const segments = same?.segments ?? segmentsOf(row);
  const { leafSeq, factsSeq, settingsSeq, path, ...rest } = JSON.parse(row.head) as HeadRecord;
  const settings = settingsOf(row.settings, settingsSeq);
  const head: SessionHead = {
    header,
    version,
    ...rest,
    path: { ...path, settings },
    updatedAt: row.updated_at,
    modifiedAt: row.modified_at,
  };
  return { key, segments, head: freezeDeep(head), leafSeq, factsSeq };
}

/** The text of a row's `segments`: where each part before the session's own begins, and whose it is. */
export function encodeSegments(segments: readonly Segment[]): string {
  return JSON.stringify(segments.slice(0, -1).map(({ key, start }) => [key, start]));
}

function segmentsOf(row: SessionRow): readonly Segment[] {
  const parts = JSON.parse(row.segments) as readonly (readonly [key: number, start: number])[];
  const version = Number(row.origin_version);
  const origins = parts.map(([key, start], index) => ({ key, start, end: parts[index + 1]?.[1] ?? version }));
  return segmentsAfter(origins, version, Number(row.key));
}

function settingsOf(text: string | null, seq: number): Settings {
  if (text === null) return EMPTY_PATH.settings;
  return settingsIn({ at: "", settings: JSON.parse(text) as Settings }, seq);
}
