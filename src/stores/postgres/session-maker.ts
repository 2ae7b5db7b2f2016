import type { DriverForkOptions } from "../../session/store-driver.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { NOTHING_FOUND, planFirst } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionCapacityError, SessionError, SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/fold.ts";
import { forkedHeader } from "../../session/forked-header.ts";
import type { SessionHeader } from "../../session/header.ts";
import { parentsOf } from "../../session/query.ts";
import type { HeadPlace } from "../rows/entry-state.ts";
import { encodePlan } from "../rows/encode-plan.ts";
import { runsColumns } from "../rows/runs-columns.ts";
import { type Segment, segmentAt, segmentsAfter } from "../rows/segments.ts";
import { checkOpen } from "./check-open.ts";
import type { EntryWriter } from "./entry-writer.ts";
import { toJsonb } from "./jsonb-text.ts";
import type { PostgresHandle, Transaction } from "./postgres-handle.ts";
import type { SessionLog } from "./session-log.ts";
import { encodeRest, encodeSegments, settingsColumn, type HeadColumns, type LoadedSession } from "./session-row.ts";

/** Makes sessions: new ones, and forks, which are a row that points into another session's log. */
export class SessionMaker {
  readonly #handle: PostgresHandle;
  readonly #log: SessionLog;
  readonly #writer: EntryWriter;
  readonly #clock: () => Date;

  constructor(handle: PostgresHandle, log: SessionLog, writer: EntryWriter, clock: () => Date) {
    this.#handle = handle;
    this.#log = log;
    this.#writer = writer;
    this.#clock = clock;
  }

  async create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    { maxOpenPerUser }: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    const now = this.#clock().toISOString();
    const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt: now });
    const plan = planFirst(empty, drafts, now);
    const { rows, place } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    const session = await this.#handle.transaction(async (transaction) => {
      await this.#checkFree(transaction, header.id);
      await checkOpen(this.#handle, transaction, header.userId, maxOpenPerUser);
      const { id: last_id = null, state = null } = rows.at(-1) ?? {};
      const made = await this.#insert(transaction, place, { last_id, state }, [], 0);
      await this.#writer.insert(transaction, made.key, rows);
      return made;
    });
    return this.#done(session);
  }

  async fork(
    sourceId: string,
    header: SessionHeader,
    { at, maxForks, maxOpenPerUser }: DriverForkOptions,
  ): Promise<SessionHead> {
    const session = await this.#handle.transaction(async (transaction) => {
      // A purge must wait until the fork can be seen. Where forks are counted, one is made after the other.
      const lock = maxForks === undefined ? "FOR KEY SHARE OF sessions" : "FOR NO KEY UPDATE OF sessions";
      const row = await this.#log.row(sourceId, transaction, lock);
      if (row === null) throw new SessionNotFoundError(sourceId);
      const source = this.#log.sessionOf(row);
      const version = await this.#versionAt(source, at, transaction);
      await this.#checkFree(transaction, header.id);
      if (maxForks !== undefined) await this.#checkForks(transaction, sourceId, maxForks);
      await checkOpen(this.#handle, transaction, header.userId, maxOpenPerUser);
      const { last, ...place } = await this.#log.headAt(transaction, source.segments, header, version);
      const forked = freezeDeep(forkedHeader(header, source.head.header, { entryId: last.last_id, version }));
      const updatedAt = this.#clock().toISOString();
      const head = freezeDeep<SessionHead>({ ...place.head, header: forked, openRuns: [], updatedAt });
      return this.#insert(transaction, { ...place, head }, last, source.segments, version);
    });
    return this.#done(session);
  }

  async #insert(
    transaction: Transaction,
    place: HeadPlace,
    last: Pick<HeadColumns, "last_id" | "state">,
    origin: readonly Segment[],
    version: number,
  ): Promise<LoadedSession> {
    const { head } = place;
    const { header } = head;
    const { runs, due } = runsColumns(head);
    const { schema } = this.#handle;
    // The holder of the last entry taken over, so that no part of a chain of forks is empty.
    const originKey = version === 0 ? null : segmentAt(origin, version - 1).key;
    const [row] = await transaction.write<{ key: string }>(
      `WITH made AS (
         INSERT INTO ${schema}.sessions (id, user_id, cwd, status, idle_at, listed_at, origin_key, origin_version,
           segments, searched, header, runs, runs_due)
         VALUES ($1, $2, $3, $4, $6, $7, $8, $9, $10, $9, $11::text::jsonb, $16, $17)
         ON CONFLICT (id) DO NOTHING RETURNING key
       )
       INSERT INTO ${schema}.heads
         (session_key, session_id, version, updated_at, modified_at, last_id, state, rest, settings)
       SELECT key, $1, $5, $6, $7, $12, $13, $14, $15 FROM made RETURNING session_key AS key`,
      [
        header.id,
        header.userId,
        header.cwd,
        head.status,
        head.version,
        head.updatedAt,
        head.modifiedAt,
        originKey,
        version,
        encodeSegments(segmentsAfter(origin, version, 0)),
        toJsonb(JSON.stringify(header)),
        last.last_id,
        last.state,
        encodeRest(place),
        settingsColumn(head.path.settings),
        runs,
        due,
      ],
    );
    if (row === undefined) throw sessionExists(header.id);
    const key = Number(row.key);
    const parents = parentsOf(head).map((parent) => ({ parent, forked: header.forkedFrom?.sessionId === parent }));
    if (parents.length > 0) {
      await transaction.write(
        `INSERT INTO ${schema}.session_parents (parent_id, session_key, forked)
         SELECT parent, $1, forked FROM json_to_recordset($2::text::json) AS new (parent text, forked boolean)`,
        [key, JSON.stringify(parents)],
      );
    }
    return { ...place, key, segments: segmentsAfter(origin, version, key) };
  }

  #done(session: LoadedSession): SessionHead {
    this.#log.remember(session);
    return session.head;
  }

  async #versionAt(source: LoadedSession, at: string | null | undefined, transaction: Transaction): Promise<number> {
    if (at === undefined) return source.head.version;
    if (at === null) return 0;
    const entry = await this.#log.findEntry(source, at, transaction);
    if (entry === null) throw new UnknownEntryError(source.head.header.id, at);
    return entry.seq + 1;
  }

  async #checkFree(transaction: Transaction, id: string): Promise<void> {
    const rows = await transaction.read(`SELECT 1 AS taken FROM ${this.#handle.schema}.sessions WHERE id = $1`, [id]);
    if (rows.length > 0) throw sessionExists(id);
  }

  async #checkForks(transaction: Transaction, sourceId: string, limit: number): Promise<void> {
    const forks = await this.#count(
      transaction,
      `session_parents JOIN ${this.#handle.schema}.sessions ON key = session_key
       WHERE parent_id = $1 AND forked AND deleted_at IS NULL`,
      sourceId,
    );
    if (forks >= limit) throw new SessionCapacityError("forks of a session", limit);
  }

  async #count(transaction: Transaction, from: string, value: string): Promise<number> {
    const sql = `SELECT count(*) AS count FROM ${this.#handle.schema}.${from}`;
    const [row] = await transaction.read<{ count: string }>(sql, [value]);
    return Number(row?.count ?? 0);
  }
}

function sessionExists(id: string): SessionError {
  return new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
}
