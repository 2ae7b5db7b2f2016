import { copyJson, NotJson } from "../../internal/json.ts";
import { SessionError, show } from "../errors.ts";
import type { SandboxPlacement } from "../log/header.ts";
import { sandboxBackend } from "./sandbox-backends.ts";
import {
  openSandbox,
  type SandboxOpening,
  type SandboxTarget,
  acquireSandbox,
  isUsable,
  releaseSandbox,
} from "./sandbox-opening.ts";
import { type Sandbox, SandboxError, type SandboxReach, type SandboxSpec } from "./sandbox.ts";

/** A sandbox that this slot waits for. If the slot's arrival is another one, the slot has released this one. */
interface Arrival {
  readonly opening: SandboxOpening;
  readonly sandbox: Promise<Sandbox>;
}

/** The sandbox of a session: none, a target, or a sandbox, open or being opened, to which the slot has one reference. */
export class SandboxSlot {
  #target: SandboxTarget | null = null;
  #handle: Sandbox | null = null;
  #arrival: Arrival | null = null;
  /** Releases of open sandboxes that are in progress. */
  readonly #closing = new Set<Promise<void>>();
  /** Releases of sandboxes that were still being opened, and are closed when they are open. */
  readonly #abandoned = new Set<Promise<void>>();
  #failures: unknown[] = [];
  /** Incremented by each release, so that a waiter can detect that the slot was released in the meantime. */
  #generation = 0;
  #holds = 0;
  #holdEnded = false;

  get handle(): Sandbox | null {
    return this.#handle;
  }

  /** Whether there is a sandbox, open or being opened. */
  get occupied(): boolean {
    return this.#handle !== null || this.#arrival !== null;
  }

  get backend(): string | null {
    return this.#handle?.backend ?? this.#target?.backend ?? null;
  }

  /** The placement that a header records. */
  get placement(): SandboxPlacement | null {
    const from = this.#handle ?? this.#target;
    if (from === null) return null;
    const handleId = this.#handle?.id ?? this.#target?.handleId ?? null;
    return { backend: from.backend, spec: copySpec(from.spec) as SandboxPlacement["spec"], handleId };
  }

  /** The reach of commands; null without a place, or if the backend does not report it. */
  async reach(): Promise<SandboxReach | null> {
    const from = this.#handle ?? this.#target;
    if (from === null) return null;
    try {
      return (await (await sandboxBackend(from.backend)).reach?.(from.spec)) ?? null;
    } catch {
      // Ignored: the question is asked without the reach, and a tool that opens the place gets the error.
      return null;
    }
  }

  aim(target: SandboxTarget): void {
    const spec = copySpec(target.spec);
    this.#release();
    this.#target = { backend: target.backend, spec, handleId: target.handleId ?? null };
  }

  bind(sandbox: Sandbox): void {
    if (sandbox === this.#handle) return;
    const target = { backend: sandbox.backend, spec: copySpec(sandbox.spec), handleId: null };
    acquireSandbox(sandbox);
    this.#release();
    this.#handle = sandbox;
    this.#target = target;
  }

  /** Shares another slot's place: adds a reference to its sandbox, or copies its target. */
  share(source: SandboxSlot): void {
    this.#release();
    this.#target = source.#target;
    if (source.#handle !== null && isUsable(source.#handle)) {
      acquireSandbox(source.#handle);
      this.#handle = source.#handle;
    } else if (source.#arrival !== null) {
      source.#arrival.opening.acquire();
      this.#await(source.#arrival.opening);
    }
  }

  async require(sessionId: string): Promise<Sandbox> {
    const generation = this.#generation;
    // No await if there is nothing to wait for: a caller must get the sandbox before a later call releases it.
    if (this.#closing.size > 0 || this.#failures.length > 0) await this.#settled(this.#closing);
    if (generation !== this.#generation) throw closedWhileOpening();
    if (this.#handle !== null) {
      if (isUsable(this.#handle)) return this.#handle;
      throw new SandboxError("sandbox_closed", "session sandbox is closed");
    }
    if (this.#arrival !== null) return this.#arrival.sandbox;
    if (this.#target === null) {
      throw new SessionError(
        "NO_SANDBOX",
        `Session ${show(sessionId)} has no sandbox; call session.to("local") or session.bindSandbox(sandbox) first.`,
      );
    }
    return this.#await(openSandbox(this.#target));
  }

  /** Opens the sandbox, and keeps it open until all holds are disposed. */
  async hold(sessionId: string): Promise<AsyncDisposable> {
    // Counted before it is open, so that a hold that ends meanwhile does not close it.
    this.#holds += 1;
    try {
      await this.require(sessionId);
    } catch (error) {
      this.#holds -= 1;
      // A hold that ended meanwhile did not close the sandbox because of this one.
      if (this.#holds === 0 && this.#holdEnded) this.#release();
      throw error;
    }
    let held = true;
    return {
      [Symbol.asyncDispose]: async () => {
        if (!held) return;
        held = false;
        this.#holds -= 1;
        this.#holdEnded = true;
        if (this.#holds === 0) await this.close();
      },
    };
  }

  async close(): Promise<void> {
    this.#release();
    await this.#settled(this.#closing, this.#abandoned);
  }

  /** A private copy of the files in a new sandbox of the same backend, or the placement if there are no files yet. */
  async isolate(sessionId: string): Promise<Sandbox | SandboxPlacement | null> {
    const target = this.#target;
    const opensEmpty = target === null || (target.spec.workingDir === undefined && target.handleId === null);
    if (!this.occupied && opensEmpty) return this.placement;
    const source = await this.require(sessionId);
    // Acquired, so that it is not closed while it is copied.
    acquireSandbox(source);
    try {
      return await copyOf(source);
    } finally {
      this.#trackRelease(this.#closing, releaseSandbox(source));
    }
  }

  #await(opening: SandboxOpening): Promise<Sandbox> {
    const sandbox = opening.opened.then(
      (opened) => {
        if (this.#arrival !== arrival) throw closedWhileOpening();
        this.#arrival = null;
        this.#handle = opened;
        return opened;
      },
      (error) => {
        if (this.#arrival === arrival) this.#arrival = null;
        throw error;
      },
    );
    const arrival: Arrival = { opening, sandbox };
    this.#arrival = arrival;
    // Callers of `require` receive the error; a fork that shares the opening may never call it, and this must not be an unhandled
    // rejection.
    sandbox.catch(() => {});
    return sandbox;
  }

  #release(): void {
    const [arrival, handle] = [this.#arrival, this.#handle];
    this.#generation += 1;
    this.#arrival = null;
    this.#handle = null;
    this.#holdEnded = false;
    if (arrival !== null) this.#trackRelease(this.#abandoned, arrival.opening.release());
    if (handle !== null) this.#trackRelease(this.#closing, releaseSandbox(handle));
  }

  #trackRelease(group: Set<Promise<void>>, released: Promise<void>): void {
    const left = released
      .catch((error: unknown) => {
        this.#failures.push(error);
      })
      .then(() => {
        group.delete(left);
      });
    group.add(left);
  }

  /** Waits for releases in progress; a failure of one is thrown once. */
  async #settled(...groups: readonly Set<Promise<void>>[]): Promise<void> {
    while (groups.some((group) => group.size > 0)) await Promise.all(groups.flatMap((group) => [...group]));
    const failures = this.#failures;
    this.#failures = [];
    if (failures.length > 0) throw releaseFailed(failures);
  }
}

function closedWhileOpening(): SandboxError {
  return new SandboxError("sandbox_closed", "The session's sandbox was closed while it was being opened.");
}

function releaseFailed(failures: readonly unknown[]): SessionError {
  const [first] = failures;
  if (failures.length === 1 && first instanceof SessionError) return first;
  const reason = first instanceof Error ? first.message : String(first);
  const cause = failures.length === 1 ? first : new AggregateError(failures);
  return new SandboxError(
    "os_error",
    `A sandbox that the session released could not be closed: ${reason.replace(/\.$/, "")}.`,
    { cause },
  );
}

function copySpec(spec: unknown): SandboxSpec {
  if (typeof spec !== "object" || spec === null || Array.isArray(spec)) {
    throw new SessionError("INVALID_OPTION", "A sandbox's spec must be an object or the path of a working directory.");
  }
  try {
    return copyJson(spec, "spec") as SandboxSpec;
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_OPTION", `${error.message}.`, { cause: error });
    throw error;
  }
}

async function copyOf(source: Sandbox): Promise<Sandbox> {
  if (!source.capabilities.snapshot) {
    throw new SandboxError(
      "unsupported",
      `The ${source.backend} sandbox cannot copy its files; use fork() to share it, or another backend.`,
    );
  }
  const backend = await sandboxBackend(source.backend);
  const { workingDir: _workingDir, ...spec } = source.spec;
  const snapshot = await source.snapshot();
  let copy: Sandbox | null = null;
  try {
    copy = await backend.open(spec);
    await copy.restore(snapshot);
    await backend.deleteSnapshot?.(snapshot);
    return copy;
  } catch (error) {
    await Promise.allSettled([copy?.close(), backend.deleteSnapshot?.(snapshot)]);
    throw error;
  }
}
