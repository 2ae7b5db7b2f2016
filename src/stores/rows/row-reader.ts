import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type Found, NOTHING_FOUND, type StoredEntry, type Wanted } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionError } from "../../session/errors.ts";
import { EMPTY_PATH, emptyHead, type PathSummary } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import { type Asking, ask } from "./asking.ts";
import { decodeHead, decodePath, type EntryState, type HeadPlace, ownSettings } from "./entry-state.ts";
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

  /** A live session, or a deleted one, as it stands now, or null. */
  *load(sessionId: string, deleted = false): Asking<Session | null> {
    const session = yield* ask(this.port.load(sessionId, deleted));
    if (session !== null) this.cache.remember(session);
    return session;
  }

  /** What a plan wants to know of a session, as far as it was loaded. */
  *look(session: Session, { ids, settings }: Wanted): Asking<Found> {
    const entries = ids.length === 0 ? NOTHING_FOUND.entries : yield* this.find(session, ids);
    const nodes = new Map<number, SettingsNode>();
    for (const seq of settings) nodes.set(seq, yield* this.settingsAt(session.segments, seq));
    return { entries, settings: nodes };
  }

  /** Entries of a session, as far as it was loaded, by their ids, each with its path. */
  *find(session: Session, ids: readonly string[]): Asking<ReadonlyMap<string, StoredEntry>> {
    const found = new Map<string, StoredEntry>();
    for (const row of yield* ask(this.port.findRows(session, ids))) {
      const path = yield* this.#pathOf(session.segments, row);
      found.set(row.id, { entry: JSON.parse(row.body) as Entry, path });
    }
    return found;
  }

  /** The settings that the row at a position holds; not frozen for a caller who uses them up. */
  *settingsAt(segments: readonly Part[], seq: number, frozen = true): Asking<SettingsNode> {
    const own = ownSettings(stateOf(yield* this.#rowAt(segments, seq)), seq, frozen);
    if (own === null) throw new Error(`Entry ${seq} was said to hold settings, but does not.`);
    return own;
  }

  /** The head after the first `version` entries of a log, and the last of their rows. */
  *headAt(
    segments: readonly Part[],
    header: SessionHeader,
    version: number,
  ): Asking<HeadPlace & { readonly last: StateRow | null }> {
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

  *#pathOf(segments: readonly Part[], row: StateRow): Asking<PathSummary | null> {
    const state = stateOf(row);
    const elsewhere = typeof state.settings === "number" ? yield* this.settingsAt(segments, state.settings) : null;
    return decodePath(state, elsewhere ?? ownSettings(state, row.seq));
  }

  *#rowAt(segments: readonly Part[], seq: number): Asking<StateRow> {
    const row = yield* ask(this.port.rowAt(segmentAt(segments, seq), seq));
    if (row !== undefined) return row;
    throw new SessionError(
      "STORE_FAILED",
      `The ${this.port.place} misses entry ${seq} of a session; it was purged just now, or the store is damaged.`,
    );
  }
}

function stateOf({ state }: StateRow): EntryState {
  return JSON.parse(state) as EntryState;
}
