import { checkArgument, isObject } from "../check-arguments.ts";
import { copyJson, NotJson } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionError } from "../errors.ts";
import { checkLineage, type Lineage, type SandboxPlacement } from "../log/header.ts";
import { checkSessionId } from "../id.ts";
import { noteSession, stamped, UNKNOWN_LINEAGE } from "../lineage/lineage-scope.ts";
import { type Content, textOf } from "../message.ts";
import { checkBackendName } from "../sandbox/sandbox-backends.ts";
import type { SandboxTarget } from "../sandbox/sandbox-opening.ts";
import { SandboxSlot } from "../sandbox/sandbox-slot.ts";
import type { Sandbox, SandboxReach, SandboxSpec } from "../sandbox/sandbox.ts";
import type { RunQuestion, RunResult } from "./run-result.ts";
import { systemRow, Transcript, userRow } from "./transcript.ts";
import type { RecoveredSpending } from "../lineage/lineage.ts";
import { addCost, addUsage, type Usage, checkCost, copyUsage } from "../usage.ts";

/** What a session made from rows may carry beside them. */
export interface SessionInit {
  readonly id?: string;
  readonly lineage?: Lineage;
  readonly usage?: Usage | null;
  readonly cost?: number | null;
  /** Where its tools act: an open sandbox, or where to open one. */
  readonly sandbox?: Sandbox | SandboxPlacement | null;
}

/**
 * What flows through agents: what was said, where side effects go, and where it came from.
 *
 * Deriving a session never changes its source. Its sandbox is a counted reference: sessions derived from one with an open
 * sandbox share it, and the last of them to let go closes it.
 */
export class Session implements AsyncDisposable {
  readonly id: string;
  #lineage: Lineage;
  #transcript: Transcript;
  #usage: Usage | null;
  #recovered: RecoveredSpending | null = null;
  #onSandbox: (() => Promise<void>) | null = null;
  #cost: number | null;
  #output: unknown;
  #result: RunResult | null = null;
  readonly #slot = new SandboxSlot();

  private constructor(transcript: Transcript, init: SessionInit, place: (slot: SandboxSlot) => void = () => {}) {
    if (init.id !== undefined) checkSessionId(init.id);
    this.id = init.id ?? uuidv7();
    this.#lineage = copyLineage(init.lineage ?? UNKNOWN_LINEAGE);
    this.#transcript = checkTranscript(transcript);
    this.#usage = copyUsage(init.usage ?? null);
    this.#cost = checkCost(init.cost ?? null);
    place(this.#slot);
    Object.freeze(this);
    noteSession(this.id);
  }

  /** A session of one thing a person says. */
  static fromUserMessage(content: Content): Session {
    return new Session(Transcript.of([userRow(content)]), {});
  }

  /** A session of an agent's instructions. */
  static fromAgentPrompt(prompt: string): Session {
    return new Session(Transcript.of([systemRow(prompt)]), {});
  }

  /** A session that says in its lineage that it is a beginning; an empty one says nothing, whatever the text. */
  static create(init: { readonly kind?: "user" | "system" | "empty"; readonly text?: Content } = {}): Session {
    const { kind = "user", text = "" } = init;
    if (kind === "empty") return new Session(Transcript.empty, {});
    if (kind === "user") return new Session(Transcript.of([userRow(text)]), { lineage: leaf("leaf_user") });
    if (kind === "system") return new Session(Transcript.of([systemRow(text)]), { lineage: leaf("leaf_system") });
    throw new SessionError("INVALID_OPTION", `A session is created of the kind "user", "system" or "empty".`);
  }

  /** A session of these rows. */
  static of(transcript: Transcript, init: SessionInit = {}): Session {
    const { sandbox = null } = init;
    return new Session(transcript, init, (slot) => {
      if (sandbox !== null && "exec" in sandbox) slot.bind(sandbox);
      else if (sandbox !== null) slot.aim(targetOf(sandbox));
    });
  }

  /** A session made by an operation on others, in the place of the first; for the operations. */
  static derive(source: Session, transcript: Transcript, init: Omit<SessionInit, "sandbox">): Session {
    const lineage = stamped(init.lineage ?? UNKNOWN_LINEAGE);
    return new Session(transcript, { ...init, lineage }, (slot) => slot.share(source.#slot));
  }

  /** Lets the operation that makes a session show how far it has come; for the operations. */
  static grow(
    session: Session,
    made: {
      transcript?: Transcript;
      usage?: Usage | null;
      cost?: number | null;
      recovered?: RecoveredSpending;
      output?: unknown;
      result?: RunResult;
    },
  ): void {
    session.#transcript = made.transcript ?? session.#transcript;
    session.#usage = copyUsage(made.usage ?? session.#usage);
    session.#cost = checkCost(made.cost ?? session.#cost);
    session.#recovered = made.recovered ?? session.#recovered;
    if (made.output !== undefined) session.#output = made.output;
    if (made.result !== undefined) session.#result = Object.freeze(made.result);
  }

  /** Adds to a session's lineage what is known only at the operation's end; for the operations. */
  static addExtras(session: Session, extras: Lineage["extras"]): void {
    const { kind, operator, parents } = session.#lineage;
    session.#lineage = operation(kind, operator, parents, [...session.#lineage.extras, ...extras]);
  }

  /** Calls a function each time that someone gets the session's sandbox, before they use it; for the operations. */
  static onSandbox(session: Session, work: () => Promise<void>): void {
    session.#onSandbox = work;
  }

  /** Puts a session that has no sandbox in the place of another; for the operations. */
  static place(session: Session, source: Session): void {
    if (!session.#slot.occupied) session.#slot.share(source.#slot);
  }

  /** Aims a session at a place that a log recorded, where an open sandbox is looked for first; for the operations. */
  static aim(session: Session, placement: SandboxPlacement): void {
    session.#slot.aim(targetOf(placement));
  }

  /** Where it came from. */
  get lineage(): Lineage {
    return this.#lineage;
  }

  /** What was said. While a run makes the session, as far as it has come. */
  get transcript(): Transcript {
    return this.#transcript;
  }

  /** The tokens that the operation which made this session spent. */
  /** The part of its spending that the session which it was recovered from counts, too. */
  get recovered(): RecoveredSpending | null {
    return this.#recovered;
  }

  get usage(): Usage | null {
    return this.#usage;
  }

  /** What that cost. */
  get cost(): number | null {
    return this.#cost;
  }

  /** The value that the run which made this session was asked for (`output`), as its schema makes it; else undefined. */
  get output(): unknown {
    return this.#output;
  }

  /** The stored session that the run which made this session was kept in; null where there is none. */
  get sessionId(): string | null {
    return this.#result?.sessionId ?? null;
  }

  /** How the run that made this session ended, `finished` or `parked`; null for a session that no run made, or not yet. */
  get status(): RunResult["status"] | null {
    return this.#result?.status ?? null;
  }

  /** What the parked run that made this session asks; empty for all others. */
  get questions(): readonly RunQuestion[] {
    return this.#result?.questions ?? [];
  }

  /** The open sandbox, or null. */
  get sandbox(): Sandbox | null {
    return this.#slot.handle;
  }

  /** The kind of sandbox that is open or will be opened, or null. */
  get sandboxBackend(): string | null {
    return this.#slot.backend;
  }

  /** What a log records of where the tools act. */
  get sandboxPlacement(): SandboxPlacement | null {
    return this.#slot.placement;
  }

  /** What commands can reach from where the tools act, whether or not it is open; null where nothing is known. */
  sandboxReach(): Promise<SandboxReach | null> {
    return this.#slot.reach();
  }

  /** The last thing a model said, or null. */
  text(): string | null {
    for (let i = this.transcript.length - 1; i >= 0; i--) {
      const message = this.transcript.at(i)?.message;
      if (message?.role !== "assistant") continue;
      const text = textOf(message.content);
      if (text !== "") return text;
    }
    return null;
  }

  /** The same transcript as a new session that knows its source. Costs the same whatever the length. */
  fork(): Session {
    return Session.derive(this, this.transcript, { lineage: operation("op_fork", "fork", [this.id]) });
  }

  /** A fork with its own copy of the sandbox's files, where the backend can copy them. */
  async forkIsolated(): Promise<Session> {
    const transcript = this.transcript;
    const sandbox = await this.#slot.isolate(this.id);
    return Session.of(transcript, { lineage: stamped(operation("op_fork", "forkIsolated", [this.id])), sandbox });
  }

  /** The same transcript as a new beginning, without parents. */
  detach(): Session {
    return Session.derive(this, this.transcript, { lineage: operation("op_detach", "detach", []) });
  }

  /** The rows of both, this one's first. Keeps this side's sandbox; the usage is the sum of both. */
  merge(other: Session): Session {
    checkIsSession(other, "merge");
    const [here, there] = [this.sandboxBackend, other.sandboxBackend];
    const opened = this.#slot.occupied || other.#slot.occupied;
    if (!opened && here !== null && there !== null && here !== there) {
      throw new SessionError(
        "INVALID_OPTION",
        `Sessions ${this.id} and ${other.id} are aimed at different sandbox backends, "${here}" and "${there}"; aim them at one with to().`,
      );
    }
    const usage = other.usage === null ? this.usage : addUsage(other.usage, this.usage ?? undefined);
    const cost = this.cost === null && other.cost === null ? null : addCost(this.cost ?? 0, other.cost);
    return Session.derive(this, this.transcript.concat(other.transcript), {
      lineage: operation("op_merge", "merge", [this.id, other.id]),
      usage,
      cost,
    });
  }

  /** Says where the tools act and lets go of the sandbox in use. A text as spec is the working directory. */
  to(backend: string = "local", spec: SandboxSpec | string = {}): this {
    checkBackendName(backend);
    this.#slot.aim({ backend, spec: typeof spec === "string" ? { workingDir: spec } : spec, handleId: null });
    return this;
  }

  /** Takes a reference on an open sandbox and lets go of the one in use. */
  bindSandbox(sandbox: Sandbox): this {
    const isSandbox = isObject(sandbox) && typeof sandbox.backend === "string" && isObject(sandbox.spec);
    checkArgument(isSandbox, sandbox, "bindSandbox", "an open sandbox");
    this.#slot.bind(sandbox);
    return this;
  }

  /**
   * The sandbox, opened if need be, once, whoever asks.
   *
   * @throws {SessionError} `NO_SANDBOX` without a place to open one, `SANDBOX_FAILED` when it is closed or cannot be opened.
   */
  requireSandbox(): Promise<Sandbox> {
    const opened = this.#slot.require(this.id);
    const work = this.#onSandbox;
    return work === null ? opened : opened.then((sandbox) => work().then(() => sandbox));
  }

  /** Opens the sandbox and keeps it open until the outermost hold is disposed. */
  hold(): Promise<AsyncDisposable> {
    return this.#slot.hold(this.id);
  }

  /** Lets go of the sandbox; the last session to do so closes it. */
  async closeSandbox(): Promise<this> {
    await this.#slot.close();
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeSandbox();
  }
}

/** The same as `Session.create({ kind: "user", text })`. */
export function createUserSession(text: Content): Session {
  return Session.create({ kind: "user", text });
}

/** The same as `Session.create({ kind: "system", text })`. */
export function createSystemSession(text: Content): Session {
  return Session.create({ kind: "system", text });
}

/** The same as `session.fork()`. */
export function forkSession(session: Session): Session {
  checkIsSession(session, "forkSession");
  return session.fork();
}

/** The same as `session.detach()`. */
export function detachSession(session: Session): Session {
  checkIsSession(session, "detachSession");
  return session.detach();
}

/** The same as `session.merge(other)`. */
export function mergeSessions(session: Session, other: Session): Session {
  checkIsSession(session, "mergeSessions");
  return session.merge(other);
}

/** @throws {SessionError} `INVALID_OPTION` that names the call, unless the value is a session. */
export function checkIsSession(session: unknown, call: string): asserts session is Session {
  checkArgument(session instanceof Session, session, call, "a session, such as Session.fromUserMessage makes");
}

/** The lineage of what an operation made. */
export function operation(
  kind: Lineage["kind"],
  operator: string,
  parents: readonly string[],
  extras: Lineage["extras"] = [],
): Lineage {
  return copyLineage({ parents, operator, kind, extras });
}

function leaf(kind: "leaf_user" | "leaf_system"): Lineage {
  return stamped(operation(kind, kind === "leaf_user" ? "createUserSession" : "createSystemSession", []));
}

/** Lineages that were checked, copied and frozen, so that sharing them is safe. */
const checkedLineages = new WeakSet<Lineage>([UNKNOWN_LINEAGE]);

function copyLineage(lineage: Lineage): Lineage {
  if (checkedLineages.has(lineage)) return lineage;
  try {
    const copy = copyJson(lineage, "lineage") as unknown as Lineage;
    checkLineage(copy);
    checkedLineages.add(copy);
    return copy;
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}

/** A spec is whatever a log recorded; what is not one asks for nothing in particular. */
function targetOf({ backend, spec, handleId }: SandboxPlacement): SandboxTarget {
  if (typeof spec === "string") return { backend, spec: { workingDir: spec }, handleId };
  const isSpec = typeof spec === "object" && spec !== null && !Array.isArray(spec);
  return { backend, spec: isSpec ? (spec as SandboxSpec) : {}, handleId };
}

function checkTranscript(transcript: unknown): Transcript {
  if (transcript instanceof Transcript) return transcript;
  throw new SessionError("INVALID_OPTION", "A session is made of a transcript; make one with Transcript.of(rows).");
}
