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

/** A sandbox that this slot waits for; another one instead means that the slot has let go of it. */
interface Arrival {
  readonly opening: SandboxOpening;
  readonly sandbox: Promise<Sandbox>;
}

/** A session's place for a sandbox: nothing, a target, or a sandbox, open or on its way, that it holds one reference on. */
export class SandboxSlot {
  #target: SandboxTarget | null = null;
  #handle: Sandbox | null = null;
  #arrival: Arrival | null = null;
  /** Sandboxes being closed that were open. */
  readonly #closing = new Set<Promise<void>>();
  /** Sandboxes that were let go of on their way, and are closed when they come. */
  readonly #abandoned = new Set<Promise<void>>();
  #failures: unknown[] = [];
  /** Counts how often the slot let go, so that who waited meanwhile can tell. */
  #timesLetGo = 0;
  #holds = 0;
  #holdEnded = false;

  get handle(): Sandbox | null {
    return this.#handle;
  }

  /** Whether there is a sandbox, or one on its way. */
  get occupied(): boolean {
    return this.#handle !== null || this.#arrival !== null;
  }

  get backend(): string | null {
    return this.#handle?.backend ?? this.#target?.backend ?? null;
  }

  /** What a header records of the place. */
  get placement(): SandboxPlacement | null {
    const from = this.#handle ?? this.#target;
    if (from === null) return null;
    const handleId = this.#handle?.id ?? this.#target?.handleId ?? null;
    return { backend: from.backend, spec: copySpec(from.spec) as SandboxPlacement["spec"], handleId };
  }

  /** What can be reached from the place; null where there is none, or its backend does not say. */
  async reach(): Promise<SandboxReach | null> {
    const from = this.#handle ?? this.#target;
    if (from === null) return null;
    try {
      return (await (await sandboxBackend(from.backend)).reach?.(from.spec)) ?? null;
    } catch {
      // Whoever is asked must be asked; that the place cannot be opened shows when a tool needs it.
      return null;
    }
  }

  aim(target: SandboxTarget): void {
    const spec = copySpec(target.spec);
    this.#letGo();
    this.#target = { backend: target.backend, spec, handleId: target.handleId ?? null };
  }

  bind(sandbox: Sandbox): void {
    if (sandbox === this.#handle) return;
    const target = { backend: sandbox.backend, spec: copySpec(sandbox.spec), handleId: null };
    acquireSandbox(sandbox);
    this.#letGo();
    this.#handle = sandbox;
    this.#target = target;
  }

  /** Takes over another slot's place: one more reference on its sandbox, or a copy of its target. */
  share(source: SandboxSlot): void {
    this.#letGo();
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
    const timesLetGo = this.#timesLetGo;
    // Without an await when there is nothing to wait for: who asks first is served before who lets go next.
    if (this.#closing.size > 0 || this.#failures.length > 0) await this.#settled(this.#closing);
    if (timesLetGo !== this.#timesLetGo) throw letGoOf();
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

  /** Opens, and stays open until as many have let go as held on. */
  async hold(sessionId: string): Promise<AsyncDisposable> {
    // Counted before it is open, so that a hold which ends meanwhile does not close it.
    this.#holds += 1;
    try {
      await this.require(sessionId);
    } catch (error) {
      this.#holds -= 1;
      // The hold that ended meanwhile left the closing to this one.
      if (this.#holds === 0 && this.#holdEnded) this.#letGo();
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
    this.#letGo();
    await this.#settled(this.#closing, this.#abandoned);
  }

  /** An own copy of the files in a sandbox of the same backend, or where to open one when there are no files yet. */
  async isolate(sessionId: string): Promise<Sandbox | SandboxPlacement | null> {
    const target = this.#target;
    const opensEmpty = target === null || (target.spec.workingDir === undefined && target.handleId === null);
    if (!this.occupied && opensEmpty) return this.placement;
    const source = await this.require(sessionId);
    // Held on to, so that nobody closes it while it is copied.
    acquireSandbox(source);
    try {
      return await copyOf(source);
    } finally {
      this.#leave(this.#closing, releaseSandbox(source));
    }
  }

  #await(opening: SandboxOpening): Promise<Sandbox> {
    const sandbox = opening.opened.then(
      (opened) => {
        if (this.#arrival !== arrival) throw letGoOf();
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
    // Whoever asked hears of a failure; a fork that joined the opening may never ask.
    sandbox.catch(() => {});
    return sandbox;
  }

  #letGo(): void {
    const [arrival, handle] = [this.#arrival, this.#handle];
    this.#timesLetGo += 1;
    this.#arrival = null;
    this.#handle = null;
    this.#holdEnded = false;
    if (arrival !== null) this.#leave(this.#abandoned, arrival.opening.release());
    if (handle !== null) this.#leave(this.#closing, releaseSandbox(handle));
  }

  #leave(group: Set<Promise<void>>, released: Promise<void>): void {
    const left = released
      .catch((error: unknown) => {
        this.#failures.push(error);
      })
      .then(() => {
        group.delete(left);
      });
    group.add(left);
  }

  /** Waits for what was let go of; a failure of that is reported once. */
  async #settled(...groups: readonly Set<Promise<void>>[]): Promise<void> {
    while (groups.some((group) => group.size > 0)) await Promise.all(groups.flatMap((group) => [...group]));
    const failures = this.#failures;
    this.#failures = [];
    if (failures.length > 0) throw releaseFailed(failures);
  }
}

function letGoOf(): SandboxError {
  return new SandboxError("sandbox_closed", "The session's sandbox was closed while it was being opened.");
}

function releaseFailed(failures: readonly unknown[]): SessionError {
  const [first] = failures;
  if (failures.length === 1 && first instanceof SessionError) return first;
  const reason = first instanceof Error ? first.message : String(first);
  const cause = failures.length === 1 ? first : new AggregateError(failures);
  return new SandboxError(
    "os_error",
    `A sandbox that the session let go of could not be closed: ${reason.replace(/\.$/, "")}.`,
    { cause },
  );
}

function copySpec(spec: unknown): SandboxSpec {
  if (typeof spec !== "object" || spec === null || Array.isArray(spec)) {
    throw new SessionError("INVALID_OPTION", "A sandbox's spec is an object, or the text of a working directory.");
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
