/** An entry of the model's, cut down to its type and one value. */
export interface ModelDraft {
  readonly id: string;
  readonly type: "message" | "leaf" | "label" | "session_info" | "status";
  readonly value: string | null;
}

/** What an operation answers: a list, or the code of the error that it is refused with. */
export type Outcome = readonly (string | number | boolean | null)[] | string;

interface ModelEntry extends ModelDraft {
  readonly parentId: string | null;
}

interface ModelSession {
  log: readonly ModelEntry[];
  deleted: boolean;
}

/** What a store does, written down as plainly as possible: a list of entries a session, copied and searched through. */
export class StoreModel {
  readonly #sessions = new Map<string, ModelSession>();

  create(id: string): Outcome {
    if (this.#sessions.has(id)) return "SESSION_EXISTS";
    this.#sessions.set(id, { log: [], deleted: false });
    return [0];
  }

  append(
    id: string,
    drafts: readonly ModelDraft[],
    onto: string | null | undefined,
    expected: number | undefined,
  ): Outcome {
    const session = this.#live(id);
    if (session === undefined) return "SESSION_NOT_FOUND";
    const stored = drafts.map((draft) => session.log.find((entry) => entry.id === draft.id));
    if (drafts.some((draft, i) => stored[i] !== undefined && !same(draft, stored[i]))) return "ENTRY_EXISTS";
    if (stored.every((entry) => entry !== undefined)) return answer(session.log, drafts);
    if (expected !== undefined && expected !== session.log.length) return "CONFLICT";
    const refusal = onto === undefined || onto === null ? null : notANode(session.log, onto);
    if (refusal !== null) return refusal;
    const log = [...session.log];
    let cursor = onto === undefined ? leafOf(log) : onto;
    for (const [index, draft] of drafts.entries()) {
      if (stored[index] !== undefined) continue;
      const own = log.find((entry) => entry.id === draft.id);
      if (own !== undefined && !same(draft, own)) return "ENTRY_EXISTS";
      if (own !== undefined) continue;
      const { type, value } = draft;
      if ((type === "label" || type === "leaf") && value !== null && !log.some((entry) => entry.id === value))
        return "UNKNOWN_ENTRY";
      if (type === "leaf" && value !== null && notANode(log, value) !== null) return "INVALID_ENTRY";
      log.push({ ...draft, parentId: cursor });
      if (type === "message") cursor = draft.id;
      if (type === "leaf") cursor = value;
    }
    session.log = log;
    return answer(log, drafts);
  }

  fork(sourceId: string, id: string, at: string | null | undefined): Outcome {
    const source = this.#live(sourceId);
    if (source === undefined) return "SESSION_NOT_FOUND";
    const index = typeof at === "string" ? source.log.findIndex((entry) => entry.id === at) : -1;
    if (typeof at === "string" && index < 0) return "UNKNOWN_ENTRY";
    if (this.#sessions.has(id)) return "SESSION_EXISTS";
    const log = at === undefined ? source.log : source.log.slice(0, index + 1);
    this.#sessions.set(id, { log, deleted: false });
    return [log.length, leafOf(log), log.at(-1)?.id ?? null];
  }

  setDeleted(id: string, deleted: boolean): Outcome {
    const session = this.#sessions.get(id);
    if (session === undefined || session.deleted === deleted) return [false];
    session.deleted = deleted;
    return [true];
  }

  purge(): Outcome {
    const gone = [...this.#sessions].filter(([, { deleted }]) => deleted);
    for (const [id] of gone) this.#sessions.delete(id);
    return [gone.length];
  }

  read(id: string, range: { after: number; before: number; limit: number; reverse: boolean }): Outcome {
    const log = this.#live(id)?.log ?? [];
    const inRange = log.filter((_, seq) => seq > range.after && seq < range.before).map((entry) => line(log, entry));
    return (range.reverse ? inRange.reverse() : inRange).slice(0, range.limit);
  }

  versionOf(id: string): number {
    return this.#live(id)?.log.length ?? 0;
  }

  /** The id of some entry of a session; one number in ten stands for none. */
  idAt(id: string, n: number): string {
    const { log } = this.#live(id) ?? { log: [] };
    return n % 10 === 9 ? "nowhere" : (log[n % log.length]?.id ?? "nowhere");
  }

  /** The ids of the sessions that are there, sorted. */
  live(): string[] {
    return [...this.#sessions]
      .filter(([, { deleted }]) => !deleted)
      .map(([id]) => id)
      .sort();
  }

  /** What the head of a session says. */
  summary(id: string): Record<string, unknown> {
    const log = this.#live(id)?.log ?? [];
    const latest = (type: ModelDraft["type"]): string | null | undefined =>
      log.findLast((entry) => entry.type === type)?.value;
    return {
      version: log.length,
      leafId: leafOf(log),
      name: latest("session_info") ?? null,
      status: latest("status") ?? "active",
      messageCount: log.filter(({ type }) => type === "message").length,
    };
  }

  #live(id: string): ModelSession | undefined {
    const session = this.#sessions.get(id);
    return session?.deleted === false ? session : undefined;
  }
}

function leafOf(log: readonly ModelEntry[]): string | null {
  let leaf: string | null = null;
  for (const { id, type, parentId, value } of log) {
    if (type === "leaf") leaf = value;
    if (type === "message" && parentId === leaf) leaf = id;
  }
  return leaf;
}

function notANode(log: readonly ModelEntry[], id: string): string | null {
  const entry = log.find((each) => each.id === id);
  if (entry === undefined) return "UNKNOWN_ENTRY";
  return entry.type === "message" ? null : "INVALID_ENTRY";
}

function same(a: ModelDraft, b: ModelDraft): boolean {
  return a.type === b.type && a.value === b.value;
}

function answer(log: readonly ModelEntry[], drafts: readonly ModelDraft[]): Outcome {
  return [log.length, ...drafts.map(({ id }) => line(log, log.find((entry) => entry.id === id) as ModelEntry))];
}

function line(log: readonly ModelEntry[], entry: ModelEntry): string {
  return `${log.indexOf(entry)} ${entry.id} on ${entry.parentId}`;
}
