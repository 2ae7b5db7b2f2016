import { freezeDeep } from "../../internal/freeze-deep.ts";
import { NOTHING_FOUND, planFirst } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { SessionError, SessionNotFoundError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/fold.ts";
import { forkedHeader } from "../../session/forked-header.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { DriverForkOptions } from "../../session/store-driver.ts";
import { type Asking, ask } from "./asking.ts";
import { encodePlan } from "./encode-plan.ts";
import type { MakeLimits, RowPort, RowSession } from "./row-port.ts";
import { RowReader } from "./row-reader.ts";
import { clipSegments, type LogRange } from "./segments.ts";

/** Makes sessions: new ones, and forks, which point into another session's log. */
export class RowMaker<Part extends LogRange, Session extends RowSession<Part>> {
  readonly #reader: RowReader<Part, Session>;
  readonly #clock: () => Date;

  constructor(reader: RowReader<Part, Session>, clock: () => Date) {
    this.#reader = reader;
    this.#clock = clock;
  }

  *create(header: SessionHeader, drafts: readonly CheckedDraft[], limits: MakeLimits): Asking<SessionHead> {
    const now = this.#clock().toISOString();
    const empty = freezeDeep<SessionHead>({ ...emptyHead(header), updatedAt: now });
    const plan = planFirst(empty, drafts, now);
    const { rows, place } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    return this.#done(
      yield* ask(this.#reader.port.locked((port) => ask(port.make({ place, rows, origin: [] }, limits)))),
    );
  }

  *fork(sourceId: string, header: SessionHeader, options: DriverForkOptions): Asking<SessionHead> {
    return this.#done(yield* ask(this.#reader.port.locked((port) => this.#fork(port, sourceId, header, options))));
  }

  *#fork(
    port: RowPort<Part, Session>,
    sourceId: string,
    header: SessionHeader,
    { at, ...limits }: DriverForkOptions,
  ): Asking<Session> {
    const reader = new RowReader(port, this.#reader.cache);
    const source = yield* reader.load(sourceId);
    if (source === null) throw new SessionNotFoundError(sourceId);
    const version = yield* versionAt(reader, source, at);
    const { last, ...there } = yield* reader.headAt(source.segments, header, version);
    const forked = freezeDeep(forkedHeader(header, source.head.header, { entryId: last?.id ?? null, version }));
    const times = { updatedAt: this.#clock().toISOString() };
    const place = {
      ...there,
      head: freezeDeep<SessionHead>({ ...there.head, header: forked, openRuns: [], ...times }),
    };
    return yield* ask(port.make({ place, rows: [], origin: clipSegments(source.segments, 0, version) }, limits));
  }

  #done(session: Session): SessionHead {
    this.#reader.cache.remember(session);
    return session.head;
  }
}

/** The error for an id that is taken. */
export function sessionExists(id: string): SessionError {
  return new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
}

function* versionAt<Part extends LogRange, Session extends RowSession<Part>>(
  reader: RowReader<Part, Session>,
  source: Session,
  at: string | null | undefined,
): Asking<number> {
  if (at === undefined) return source.head.version;
  if (at === null) return 0;
  const entry = yield* reader.findEntry(source, at);
  if (entry === null) throw new UnknownEntryError(source.head.header.id, at);
  return entry.seq + 1;
}
