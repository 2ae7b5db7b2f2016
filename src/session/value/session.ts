import { checkArgument, checkOptionsOf, isObject } from "../check-arguments.ts";
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

/** Optional parts of a session made from rows. */
export interface SessionInit {
  readonly id?: string;
  readonly lineage?: Lineage;
  readonly usage?: Usage | null;
  readonly cost?: number | null;
  /** Where its tools act: an open sandbox, or a placement in which to open one. */
  readonly sandbox?: Sandbox | SandboxPlacement | null;
}

/**
 * The value that agents take and return: a transcript, the sandbox for side effects, and the lineage.
 *
 * Deriving a session never changes its source. Its sandbox is a counted reference: sessions derived from one with an
 * open sandbox share it, and the last one to release it closes it.
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

  /** A session with a single user message. */
  static fromUserMessage(content: Content): Session {
    return new Session(Transcript.of([userRow(content)]), {});
  }

  /** A session with an agent's instructions. */
  static fromAgentPrompt(prompt: string): Session {
    return new Session(Transcript.of([systemRow(prompt)]), {});
  }

  /** A session whose lineage marks it as an original; an `empty` one has no message, even if a text is given. */
  static create(init: { readonly kind?: "user" | "system" | "empty"; readonly text?: Content } = {}): Session {
    checkOptionsOf(init, { kind: true, text: true }, "Session.create");
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

  /** Internal: a session derived from others, with the sandbox placement of the first. */
  static derive(source: Session, transcript: Transcript, init: Omit<SessionInit, "sandbox">): Session {
    const lineage = stamped(init.lineage ?? UNKNOWN_LINEAGE);
    return new Session(transcript, { ...init, lineage }, (slot) => slot.share(source.#slot));
  }

  /** Internal: lets the operation that produces a session publish its progress. */
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

  /** Internal: adds lineage fields that are known only at the end of an operation. */
  static addExtras(session: Session, extras: Lineage["extras"]): void {
    const { kind, operator, parents } = session.#lineage;
    session.#lineage = operation(kind, operator, parents, [...session.#lineage.extras, ...extras]);
  }

  /** Internal: calls a function each time that someone requests the session's sandbox, before they get it. */
  static onSandbox(session: Session, work: () => Promise<void>): void {
    session.#onSandbox = work;
  }

  /** Internal: gives a session without a sandbox the placement of another session. */
  static place(session: Session, source: Session): void {
    if (!session.#slot.occupied) session.#slot.share(source.#slot);
  }

  /** Internal: sets a placement that a log recorded; an already open sandbox is reused. */
  static aim(session: Session, placement: SandboxPlacement): void {
    session.#slot.aim(targetOf(placement));
  }

  /** The origin of the session. */
  get lineage(): Lineage {
    return this.#lineage;
  }

  /** The messages. While a run produces the session, the messages so far. */
  get transcript(): Transcript {
    return this.#transcript;
  }

  /** The usage of the operation that produced this session. */
  /** The part of the usage that the session from which it was recovered counts, too. */
  get recovered(): RecoveredSpending | null {
    return this.#recovered;
  }

  get usage(): Usage | null {
    return this.#usage;
  }

  /** The cost of that usage. */
  get cost(): number | null {
    return this.#cost;
  }

  /**
   * The structured output (`output`) of the run that produced this session, parsed by its schema; otherwise undefined.
   */
  get output(): unknown {
    return this.#output;
  }

  /** The stored session of the run that produced this session; null if there is none. */
  get sessionId(): string | null {
    return this.#result?.sessionId ?? null;
  }

  /**
   * How the run that produced this session ended, `finished` or `parked`; null while it is running, or if no run
   * produced the session.
   */
  get status(): RunResult["status"] | null {
    return this.#result?.status ?? null;
  }

  /** The questions of the parked run that produced this session; empty for all other sessions. */
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

  /** The sandbox placement in the form that a log records. */
  get sandboxPlacement(): SandboxPlacement | null {
    return this.#slot.placement;
  }

  /** What commands can reach from where the tools act, whether or not the sandbox is open; null if unknown. */
  sandboxReach(): Promise<SandboxReach | null> {
    return this.#slot.reach();
  }

  /** The text of the last answer, or null. */
  text(): string | null {
    for (let i = this.transcript.length - 1; i >= 0; i--) {
      const message = this.transcript.at(i)?.message;
      if (message?.role !== "assistant") continue;
      const text = textOf(message.content);
      if (text !== "") return text;
    }
    return null;
  }

  /** A new session with the same transcript and this session as its parent. The cost does not depend on the length. */
  fork(): Session {
    return Session.derive(this, this.transcript, { lineage: operation("op_fork", "fork", [this.id]) });
  }

  /** A fork with its own copy of the sandbox's files, if the backend can copy them. */
  async forkIsolated(): Promise<Session> {
    const transcript = this.transcript;
    const sandbox = await this.#slot.isolate(this.id);
    return Session.of(transcript, { lineage: stamped(operation("op_fork", "forkIsolated", [this.id])), sandbox });
  }

  /** A new session with the same transcript and without parents. */
  detach(): Session {
    return Session.derive(this, this.transcript, { lineage: operation("op_detach", "detach", []) });
  }

  /**
   * A new session with the messages of both, this one's first. Keeps this session's sandbox; its usage is the sum of
   * both.
   */
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

  /** Sets where the tools act and releases the current sandbox. If the spec is a string, it is the working directory. */
  to(backend: string = "local", spec: SandboxSpec | string = {}): this {
    checkBackendName(backend);
    this.#slot.aim({ backend, spec: typeof spec === "string" ? { workingDir: spec } : spec, handleId: null });
    return this;
  }

  /** Acquires a reference to an open sandbox and releases the current one. */
  bindSandbox(sandbox: Sandbox): this {
    const isSandbox = isObject(sandbox) && typeof sandbox.backend === "string" && isObject(sandbox.spec);
    checkArgument(isSandbox, sandbox, "bindSandbox", "an open sandbox");
    this.#slot.bind(sandbox);
    return this;
  }

  /**
   * Returns the sandbox; opens it on the first call.
   *
   * @throws {SessionError} `NO_SANDBOX` without a placement, `SANDBOX_FAILED` if it is closed or cannot be opened.
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

  /** Releases the sandbox; the last session to do so closes it. */
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

/** The lineage of an operation's result. */
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

/** Lineages that were checked, copied and frozen, so that they can be shared. */
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

/** A spec comes from a log and may be anything; an invalid one is treated as empty. */
function targetOf({ backend, spec, handleId }: SandboxPlacement): SandboxTarget {
  if (typeof spec === "string") return { backend, spec: { workingDir: spec }, handleId };
  const isSpec = typeof spec === "object" && spec !== null && !Array.isArray(spec);
  return { backend, spec: isSpec ? (spec as SandboxSpec) : {}, handleId };
}

function checkTranscript(transcript: unknown): Transcript {
  if (transcript instanceof Transcript) return transcript;
  throw new SessionError("INVALID_OPTION", "A session is made of a transcript; make one with Transcript.of(rows).");
}
