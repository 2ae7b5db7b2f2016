import { defined } from "../../internal/defined.ts";
import { type JsonObject, sameJson } from "../../internal/json.ts";
import { isObject } from "../../session/check-arguments.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import { type SessionState, turnOf } from "../../session/state/state.ts";
import { type KeyDiff, StateDiff } from "../../session/state/state-diff.ts";
import { type ForkChain, writerOf } from "./fork-chain.ts";
import type { MergeOutcome, MergeStrategy } from "./merge-strategy.ts";
import { type Candidate, type Origin, takeOver } from "./take-over.ts";
import { type TurnInput, turnDraft } from "../turn-input.ts";

/** The two sides of a merge. */
export interface MergeSubject {
  readonly parent: SessionState;
  readonly branch: SessionState;
  readonly chain: ForkChain;
  readonly newEntries: readonly Entry[];
}

/** Converts an entry of a branch for its parent; null if it is not merged. */
export function candidateOf(entry: Entry, chain: ForkChain): Candidate | null {
  const { id, forkedFrom } = writerOf(chain, entry);
  return takeOver(entry, { sessionId: id, branchName: forkedFrom?.branchName ?? null, turnId: entry.id });
}

/**
 * Converts the result of a strategy into the entries to append, in order.
 *
 * @throws {SessionError} `INVALID_VALUE` for a result that cannot be appended.
 */
export function candidatesOf(answer: unknown, strategy: MergeStrategy, subject: MergeSubject): readonly Candidate[] {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw refused(strategy, "it is neither a merge outcome nor a state");
  }
  return isState(answer)
    ? new Collector(strategy, subject).addState(answer).candidates
    : new Collector(strategy, subject).addOutcome(answer as MergeOutcome).candidates;
}

/** The name of a strategy in messages and ids. */
function nameOf(strategy: MergeStrategy): string {
  return strategy.name ?? strategy.constructor?.name ?? "Object";
}

/** Fields that are computed from the turns, or that only describe the position. */
const DERIVED: ReadonlySet<string> = new Set<keyof SessionState>([
  "turnCount",
  "totalTokens",
  "totalCost",
  "spent",
  "updatedAt",
  "version",
  "leafId",
  "checkpointId",
]);
const SETTINGS: ReadonlySet<string> = new Set<keyof SessionState>(["systemPrompt", "activeTools", "activeSkills"]);

/** Collects the entries of a strategy's result, and gives deterministic ids to those without one. */
class Collector {
  readonly candidates: Candidate[] = [];
  readonly #strategy: MergeStrategy;
  readonly #subject: MergeSubject;
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #origin: Origin;

  constructor(strategy: MergeStrategy, subject: MergeSubject) {
    const { sessionId, branchName } = subject.branch;
    this.#strategy = strategy;
    this.#subject = subject;
    this.#entries = new Map(subject.newEntries.map((entry) => [entry.id, entry]));
    this.#origin = { sessionId, branchName };
  }

  addOutcome({ entries = [], turns = [], variables = {}, unset = [] }: MergeOutcome): this {
    for (const [name, list] of Object.entries({ entries, turns, unset })) {
      if (!Array.isArray(list)) throw refused(this.#strategy, `its ${name} are not a list`);
    }
    if (!isObject(variables)) throw refused(this.#strategy, "its variables are not an object");
    for (const entry of entries) this.#addEntry(entry);
    for (const turn of turns) this.#addTurn(turn);
    return this.#addSettings({ set: variables, unset });
  }

  addState(next: SessionState): this {
    const { parent } = this.#subject;
    const { fields, metadata, variables, turns } = StateDiff.compute(parent, next);
    if (metadata !== undefined) throw refused(this.#strategy, "it changes metadata, which is immutable");
    for (const { remove, insert } of turns?.splices ?? []) {
      if (remove > 0)
        throw refused(this.#strategy, "it changes or removes turns of the parent, but a merge can only append");
      for (const turn of insert) this.#addTurn(turn);
    }
    return this.#addFields(fields, variables);
  }

  #addEntry(entry: Entry | EntryDraft): void {
    const own = typeof entry?.id === "string" ? this.#entries.get(entry.id) : undefined;
    if (own !== undefined && (own === entry || sameJson(own, entry))) {
      this.#push(candidateOf(own, this.#subject.chain));
      return;
    }
    const candidate = takeOver({ ...entry, id: entry?.id ?? this.#ownId() }, this.#originOf(own));
    if (candidate === null) throw refused(this.#strategy, `an entry of the type ${show(entry?.type)} cannot be merged`);
    this.#push(entry.id === undefined ? { ...candidate, once: true } : candidate);
  }

  #addTurn(turn: TurnInput): void {
    const own = typeof turn?.turnId === "string" ? this.#entries.get(turn.turnId) : undefined;
    if (own?.type === "message" && sameJson(turnOf(own), turn)) {
      this.#push(candidateOf(own, this.#subject.chain));
      return;
    }
    const draft = turnDraft(turn);
    const candidate = takeOver({ ...draft, id: draft.id ?? this.#ownId() }, this.#originOf(own));
    this.#push(candidate !== null && draft.id === undefined ? { ...candidate, once: true } : candidate);
  }

  #addFields(fields: KeyDiff = {}, variables: KeyDiff = {}): this {
    const changed = [...Object.keys(fields.set ?? {}), ...(fields.unset ?? [])].filter((field) => !DERIVED.has(field));
    const wrong = changed.find((field) => field !== "name" && !SETTINGS.has(field));
    if (wrong !== undefined) throw refused(this.#strategy, `it has another ${wrong} than the parent`);
    const { set = {} } = fields;
    this.#addSettings(variables, Object.fromEntries(Object.entries(set).filter(([field]) => SETTINGS.has(field))));
    if (set.name === undefined) return this;
    const draft = { type: "session_info", id: `${this.#prefix()}-name`, name: String(set.name ?? "") } as const;
    return this.#push({ draft, origin: this.#origin, once: true });
  }

  /** One entry for each author of variables in the branch, so that erasing one of them leaves those of others. */
  #addSettings({ set = {}, unset = [] }: KeyDiff, settings: JsonObject = {}): this {
    const authors = new Set([
      ...(Object.keys(settings).length > 0 ? [undefined] : []),
      ...[...Object.keys(set), ...unset].map((key) => this.#authorOf(key)),
    ]);
    for (const [index, by] of [...authors].entries()) {
      const isTheirs = (key: string): boolean => this.#authorOf(key) === by;
      const changes = {
        set: Object.fromEntries(Object.entries(set).filter(([key]) => isTheirs(key))),
        unset: unset.filter(isTheirs),
      };
      const id = `${this.#prefix()}-variables${index === 0 ? "" : `-${index}`}`;
      const own = by === undefined ? settings : {};
      const draft = { type: "variables", id, ...changes, ...own, ...defined({ by }) } as const;
      this.#push({ draft, origin: this.#origin, once: true });
    }
    return this;
  }

  /** The user who changed a variable last in the branch. */
  #authorOf(key: string): string | undefined {
    const changes = (entry: Entry): boolean =>
      entry.type === "variables" && (Object.hasOwn(entry.set, key) || entry.unset.includes(key));
    return this.#subject.newEntries.findLast(changes)?.by;
  }

  #push(candidate: Candidate | null): this {
    if (candidate !== null) this.candidates.push(candidate);
    return this;
  }

  #originOf(own: Entry | undefined): Origin {
    return own === undefined ? this.#origin : (candidateOf(own, this.#subject.chain)?.origin ?? this.#origin);
  }

  #ownId(): string {
    return `${this.#prefix()}-${this.candidates.length}`;
  }

  /** Deterministic for a branch at a version, so that repeated merges are idempotent. */
  #prefix(): string {
    const { sessionId, version } = this.#subject.branch;
    return `${sessionId}/${nameOf(this.#strategy)}-${version}`;
  }
}

function isState(answer: object): answer is SessionState {
  return "sessionId" in answer && "turns" in answer;
}

function refused(strategy: MergeStrategy, problem: string): SessionError {
  return new SessionError(
    "INVALID_VALUE",
    `The result of the merge strategy ${show(nameOf(strategy))} cannot be merged: ${problem}.`,
  );
}
