import { freezeDeep } from "../../internal/freeze-deep.ts";
import { EMPTY_PATH, emptyHead, type PathSummary, type SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import {
  decodeHead,
  decodePath,
  type EntryState,
  factsOf,
  type HeadPlace,
  pathState,
  settingsIn,
  settingsState,
} from "../rows/entry-state.ts";
import type { RowSession } from "../rows/row-port.ts";
import { type Segment, segmentsAfter } from "../rows/segments.ts";
import { fromJsonb } from "./jsonb-text.ts";

/** The columns that make a session, as `sessionOf` reads them, of `sessionsIn`. */
export const SESSION_COLUMNS = `key, id, marked, version, updated_at, modified_at, origin_version, segments,
  header::text AS header, last_id, state, rest, settings`;

/**
 * Whether a session was not deleted, of one that is found by its key or id. Said in a way that no index of live sessions
 * answers: on a table that the database knows nothing of yet, it might walk through one of those instead.
 */
export const IS_LIVE = "coalesce(deleted_at, '') = ''";

/** Sessions together with their heads, as SQL. */
export function sessionsIn(schema: string): string {
  return `${schema}.sessions JOIN ${schema}.heads ON session_key = key`;
}

/** What a session's row says of its head, beside the columns that listings need. */
export interface HeadColumns {
  /** The id and the state of the last entry; null before the first. */
  readonly last_id: string | null;
  readonly state: string | null;
  /** What that state only refers to, where it does. */
  readonly rest: string | null;
  readonly settings: string | null;
}

/** A session's row, of `SESSION_COLUMNS`. */
export interface SessionRow extends HeadColumns {
  readonly key: string;
  readonly id: string;
  readonly marked: boolean;
  readonly version: string;
  readonly updated_at: string;
  readonly modified_at: string;
  readonly origin_version: string;
  readonly segments: string;
  readonly header: string;
}

/** A session as it stood at one version, with the key of its row. */
export interface LoadedSession extends RowSession<Segment> {
  readonly key: number;
  /** Whether it can be appended to without marking it first. */
  readonly marked: boolean;
}

/** The leaf, where it is not the last entry, and the facts, where another entry holds them. */
interface Rest {
  readonly leaf?: { readonly id: string; readonly state: EntryState };
  readonly facts?: EntryState["facts"];
}

/** The text of a row's `rest`. */
export function encodeRest(place: HeadPlace): string {
  const { head, factsSeq } = place;
  const elsewhere = leafElsewhere(place);
  const leaf = { id: head.leafId as string, state: { at: "", ...pathState(head.path, elsewhere ?? 0) } };
  const rest: Rest = { ...(elsewhere !== null && { leaf }), ...(factsSeq !== null && { facts: factsOf(head) }) };
  return JSON.stringify(rest);
}

/** Whether two heads of a session may have different texts as `rest`. */
export function restChanged(before: HeadPlace, after: HeadPlace): boolean {
  return before.factsSeq !== after.factsSeq || leafElsewhere(before) !== leafElsewhere(after);
}

/** The text of a row's `settings`: what the node holds that they stand at. */
export function settingsColumn(settings: SettingsNode | null): string {
  return JSON.stringify(settings === null ? null : settingsState(settings));
}

/** The name that a session's row gives it, or null. */
export function nameIn({ state, rest }: Pick<HeadColumns, "state" | "rest">): string | null {
  const own = state === null ? undefined : (JSON.parse(state) as EntryState).facts;
  const facts = typeof own === "object" ? own : ((rest === null ? {} : JSON.parse(rest)) as Rest).facts;
  return typeof facts === "object" ? (facts.name ?? null) : null;
}

/** The session of a row; what is `known` of it is taken over where it still holds. */
export function sessionOf(row: SessionRow, known: LoadedSession | undefined): LoadedSession {
  const key = Number(row.key);
  const version = Number(row.version);
  const { marked } = row;
  const same = known?.key === key ? known : undefined;
  if (same?.head.version === version) return same.marked === marked ? same : { ...same, marked };
  const header = same?.head.header ?? (freezeDeep(fromJsonb(row.header)) as SessionHeader);
  const segments = same?.segments ?? segmentsOf(row);
  const { head, leafSeq, factsSeq } = placeOf(row, version, header);
  // A fork that was not appended to yet has times of its own.
  const times = { updatedAt: row.updated_at, modifiedAt: row.modified_at };
  return { key, segments, marked, head: freezeDeep({ ...head, ...times }), leafSeq, factsSeq };
}

/** The text of a row's `segments`: where each part before the session's own begins, and whose it is. */
export function encodeSegments(segments: readonly Segment[]): string {
  return JSON.stringify(segments.slice(0, -1).map(({ key, start }) => [key, start]));
}

/** Where the leaf is, unless it is the last entry. */
function leafElsewhere({ head, leafSeq }: HeadPlace): number | null {
  return leafSeq === head.version - 1 ? null : leafSeq;
}

function placeOf(row: HeadColumns, version: number, header: SessionHeader): HeadPlace {
  if (row.state === null) return { head: emptyHead(header), leafSeq: null, factsSeq: null };
  const state = JSON.parse(row.state) as EntryState;
  const rest = (row.rest === null ? {} : JSON.parse(row.rest)) as Rest;
  const leafSeq = state.leaf === undefined ? version - 1 : state.leaf;
  const leaf = leafSeq === version - 1 ? { id: row.last_id as string, state } : rest.leaf;
  const path = leafSeq === null || leaf === undefined ? EMPTY_PATH : pathOf(leaf.state, leafSeq, row.settings);
  const leafId = leafSeq === null ? null : (leaf?.id ?? null);
  const factsSeq = typeof state.facts === "object" ? version - 1 : (state.facts ?? null);
  const facts = typeof state.facts === "object" ? state.facts : rest.facts;
  const head: SessionHead = decodeHead(version, state, { header, leafId, path, facts });
  return { head, leafSeq, factsSeq };
}

function pathOf(state: EntryState, seq: number, settings: string | null): PathSummary {
  const path = decodePath(state, seq, (place) =>
    settingsIn({ at: "", settings: JSON.parse(settings ?? "null") as EntryState["settings"] & object }, place),
  );
  return path ?? EMPTY_PATH;
}

function segmentsOf(row: SessionRow): readonly Segment[] {
  const parts = JSON.parse(row.segments) as readonly (readonly [key: number, start: number])[];
  const version = Number(row.origin_version);
  const origins = parts.map(([key, start], index) => ({ key, start, end: parts[index + 1]?.[1] ?? version }));
  return segmentsAfter(origins, version, Number(row.key));
}
