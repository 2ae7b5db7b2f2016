import { freezeDeep } from "../../internal/freeze-deep.ts";
import { NOTHING_FOUND, planFirst } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import { SessionError, SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { forkedHeader } from "../../session/log/forked-header.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { ForkOptions } from "../../session/store.ts";
import { type Asking, ask } from "./asking.ts";
import { encodePlan } from "./encode-plan.ts";
import type { MakeLimits } from "../complete/session-limits.ts";
import type { RowSession } from "./row-port.ts";
import type { RowReader } from "./row-reader.ts";
import { clipSegments, type LogRange } from "./segments.ts";

/** Makes a new session. */
export function* makeRows<Part extends LogRange, Session extends RowSession<Part>>(
  { port }: RowReader<Part, Session>,
  header: SessionHeader,
  drafts: readonly CheckedDraft[],
  { now, ...limits }: MakeLimits & { readonly now: string },
): Asking<Session> {
  const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt: now });
  const plan = planFirst(empty, drafts, now);
  const { rows, place } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
  return yield* ask(port.locked((locked) => ask(locked.make({ place, rows, origin: [] }, limits))));
}

/** Makes a fork, which points into another session's log. Called under `locked`. */
export function* forkRows<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  sourceId: string,
  header: SessionHeader,
  { at, now, ...limits }: ForkOptions & { readonly now: string },
): Asking<Session> {
  const source = yield* reader.load(sourceId);
  if (source === null) throw new SessionNotFoundError(sourceId);
  const [row] = typeof at === "string" ? yield* ask(reader.port.findRows(source, [at])) : [];
  if (row === undefined && typeof at === "string") throw new UnknownEntryError(sourceId, at);
  const version = at === undefined ? source.head.version : row === undefined ? 0 : row.seq + 1;
  const { last, ...there } = yield* reader.headAt(source.segments, header, version);
  const forked = freezeDeep(forkedHeader(header, source.head.header, { entryId: last?.id ?? null, version }));
  const head = freezeDeep<SessionHead>({ ...there.head, header: forked, openRuns: [], updatedAt: now });
  const origin = clipSegments(source.segments, 0, version);
  return yield* ask(reader.port.make({ place: { ...there, head }, rows: [], origin }, limits));
}

/** The error for an id that is taken. */
export function sessionExists(id: string): SessionError {
  return new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
}
