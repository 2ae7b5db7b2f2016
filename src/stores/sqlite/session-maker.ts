import { NOTHING_FOUND, planFirst } from "../../session/append-plan.ts";
import type { DriverForkOptions } from "../../session/store-driver.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionCapacityError, SessionError, SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/fold.ts";
import { forkedHeader } from "../../session/forked-header.ts";
import type { SessionHeader } from "../../session/header.ts";
import { parentsOf } from "../../session/query.ts";
import { checkOpen } from "./check-open.ts";
import type { HeadPlace } from "../rows/entry-state.ts";
import { encodePlan } from "../rows/encode-plan.ts";
import type { EntryWriter } from "./entry-writer.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type Segment, segmentAt, segmentsAfter } from "../rows/segments.ts";
import type { LoadedSession, SessionLog } from "./session-log.ts";
import type { SqliteHandle } from "./sqlite-handle.ts";

/** Makes sessions: new ones, and forks, which are a row that points into another session's log. */
export class SessionMaker {
  readonly #handle: SqliteHandle;
  readonly #log: SessionLog;
  readonly #writer: EntryWriter;
  readonly #clock: () => Date;

  constructor(handle: SqliteHandle, log: SessionLog, writer: EntryWriter, clock: () => Date) {
    this.#handle = handle;
    this.#log = log;
    this.#writer = writer;
    this.#clock = clock;
  }

  create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    { maxOpenPerUser }: { maxOpenPerUser?: number },
  ): SessionHead {
    const now = this.#clock().toISOString();
    const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt: now });
    const plan = planFirst(empty, drafts, now);
    const start: HeadPlace = { head: empty, leafSeq: null, factsSeq: null };
    const { rows, place } = encodePlan(start, plan, NOTHING_FOUND.entries);
    const session = this.#handle.transaction(() => {
      this.#checkFree(header.id);
      checkOpen(this.#handle, header.userId, maxOpenPerUser);
      const made = this.#insert(place, [], 0);
      this.#writer.insertAll(made.key, rows);
      this.#writer.finish(made.key, empty, place.head);
      return made;
    });
    return this.#done(session);
  }

  fork(sourceId: string, header: SessionHeader, { at, maxForks, maxOpenPerUser }: DriverForkOptions): SessionHead {
    const session = this.#handle.transaction(() => {
      const source = this.#log.load(sourceId);
      if (source === null) throw new SessionNotFoundError(sourceId);
      const version = this.#versionAt(source, at);
      this.#checkFree(header.id);
      if (maxForks !== undefined) this.#checkForks(sourceId, maxForks);
      checkOpen(this.#handle, header.userId, maxOpenPerUser);
      const entryId = version === 0 ? null : this.#log.idAt(source.segments, version - 1);
      const forked = freezeDeep(forkedHeader(header, source.head.header, { entryId, version }));
      const place = this.#log.headAt(source.segments, forked, version);
      const head = freezeDeep<SessionHead>({ ...place.head, updatedAt: this.#clock().toISOString() });
      return this.#insert({ ...place, head }, source.segments, version);
    });
    return this.#done(session);
  }

  #insert(place: HeadPlace, origin: readonly Segment[], version: number): LoadedSession {
    const { head } = place;
    const { header } = head;
    // The holder of the last entry taken over, so that no part of a chain of forks is empty.
    const originKey = version === 0 ? null : segmentAt(origin, version - 1).key;
    const row = this.#handle
      .prepare(
        `INSERT INTO sessions
           (id, user_id, cwd, status, name, version, updated_at, modified_at, origin_key, origin_version, header)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`,
      )
      .get<{ key: number }>([
        header.id,
        header.userId,
        header.cwd,
        head.status,
        head.name,
        head.version,
        head.updatedAt,
        head.modifiedAt,
        originKey,
        version,
        JSON.stringify(header),
      ]) as { key: number };
    const insertParent = this.#handle.prepare("INSERT INTO session_parents VALUES (?, ?, ?)");
    for (const parent of parentsOf(head)) {
      insertParent.run([parent, row.key, header.forkedFrom?.sessionId === parent ? 1 : 0]);
    }
    return { ...place, key: row.key, segments: segmentsAfter(origin, version, row.key) };
  }

  #done(session: LoadedSession): SessionHead {
    this.#log.remember(session);
    return session.head;
  }

  #versionAt(source: LoadedSession, at: string | null | undefined): number {
    if (at === undefined) return source.head.version;
    if (at === null) return 0;
    const entry = this.#log.findEntry(source, at);
    if (entry === null) throw new UnknownEntryError(source.head.header.id, at);
    return entry.seq + 1;
  }

  #checkFree(id: string): void {
    if (this.#handle.prepare("SELECT 1 FROM sessions WHERE id = ?").get([id]) === undefined) return;
    throw new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
  }

  #checkForks(sourceId: string, limit: number): void {
    const forks = this.#count(
      `SELECT count(*) AS count FROM session_parents JOIN sessions ON key = session_key
       WHERE parent_id = ? AND forked = 1 AND deleted_at IS NULL`,
      sourceId,
    );
    if (forks >= limit) throw new SessionCapacityError("forks of a session", limit);
  }

  #count(sql: string, value: string): number {
    return Number(this.#handle.prepare(sql).get<{ count: number }>([value])?.count ?? 0);
  }
}
