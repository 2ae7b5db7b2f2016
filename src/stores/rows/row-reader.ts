import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type Found, NOTHING_FOUND, type StoredEntry, type Wanted } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { EMPTY_PATH, emptyHead, type PathSummary } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import { type Coroutine, waitFor } from "./coroutine.ts";
import { decodeHead, decodePath, type EntryState, type LocatedHead, ownSettings } from "./row-encoding.ts";
import type { RowPort, RowSession, StateRow } from "./row-port.ts";
import { type LogRange, segmentAt } from "./segments.ts";
import type { SessionCache } from "./session-cache.ts";

/** Reads heads and entries through a port. */
export class RowReader<Part extends LogRange, Session extends RowSession<Part>> {
  readonly port: RowPort<Part, Session>;
  readonly cache: SessionCache<Session>;

  constructor(port: RowPort<Part, Session>, cache: SessionCache<Session>) {
    this.port = port;
    this.cache = cache;
  }

  /** The current version of a live session, or of a deleted one, or null. */
  *load(sessionId: string, deleted = false): Coroutine<Session | null> {
    const session = yield* waitFor(this.port.load(sessionId, deleted));
    if (session !== null) this.cache.remember(session);
    return session;
  }

  /** Looks up the entries and settings that `planAppend` asks for, up to the version that was loaded. */
  *lookUp(session: Session, { ids, settings }: Wanted): Coroutine<Found> {
    const entries = ids.length === 0 ? NOTHING_FOUND.entries : yield* this.find(session, ids);
    const nodes = new Map<number, SettingsNode>();
    for (const seq of settings) nodes.set(seq, yield* this.settingsAt(session.segments, seq));
    return { entries, settings: nodes };
  }

  /** Entries by id, each with its path summary, up to the version that was loaded. */
  *find(session: Session, ids: readonly string[]): Coroutine<ReadonlyMap<string, StoredEntry>> {
    const found = new Map<string, StoredEntry>();
    for (const row of yield* waitFor(this.port.findRows(session, ids))) {
      const path = yield* this.#pathOf(session.segments, row);
      found.set(row.id, { entry: JSON.parse(row.body) as Entry, path });
    }
    return found;
  }

  /** The settings node that the row at `seq` stores. Pass `frozen: false` only to a caller that may modify it. */
  *settingsAt(segments: readonly Part[], seq: number, frozen = true): Coroutine<SettingsNode> {
    const own = ownSettings(stateOf(yield* this.#rowAt(segments, seq)), seq, frozen);
    if (own === null)
      throw new Error(`Row ${seq} is referenced as holding settings but holds none; the store is damaged.`);
    return own;
  }

  /** The head after the first `version` entries of a log, and the row of the last of them. */
  *headAt(
    segments: readonly Part[],
    header: SessionHeader,
    version: number,
  ): Coroutine<LocatedHead & { readonly last: StateRow | null }> {
    if (version === 0) return { head: freezeDeep(emptyHead(header)), leafSeq: null, factsSeq: null, last: null };
    const last = yield* this.#rowAt(segments, version - 1);
    const state = stateOf(last);
    const leafSeq = state.leaf === undefined ? last.seq : state.leaf;
    const leaf = leafSeq === null ? null : leafSeq === last.seq ? last : yield* this.#rowAt(segments, leafSeq);
    const path = leaf === null ? EMPTY_PATH : ((yield* this.#pathOf(segments, leaf)) ?? EMPTY_PATH);
    let { facts } = state;
    const factsSeq = typeof facts === "object" ? last.seq : (facts ?? null);
    if (typeof facts === "number") facts = stateOf(yield* this.#rowAt(segments, facts)).facts;
    const head = decodeHead(version, state, { header, leafId: leaf?.id ?? null, path, facts });
    return { head, leafSeq, factsSeq, last };
  }

  *#pathOf(segments: readonly Part[], row: StateRow): Coroutine<PathSummary | null> {
    const state = stateOf(row);
    const elsewhere = typeof state.settings === "number" ? yield* this.settingsAt(segments, state.settings) : null;
    return decodePath(state, elsewhere ?? ownSettings(state, row.seq));
  }

  *#rowAt(segments: readonly Part[], seq: number): Coroutine<StateRow> {
    const row = yield* waitFor(this.port.rowAt(segmentAt(segments, seq), seq));
    if (row !== undefined) return row;
    throw new SessionError(
      "STORE_FAILED",
      `The ${this.port.storeName} has no row for entry ${seq} of a session; it was purged a moment ago, or the store is damaged.`,
    );
  }
}

function stateOf({ state }: StateRow): EntryState {
  return JSON.parse(state) as EntryState;
}
