import { SessionError, show } from "./errors.ts";
import type { SandboxPlacement } from "./header.ts";
import { checkBackendName, sandboxBackend } from "./sandbox-backends.ts";
import { acquireSandbox, isUsable, releaseSandbox } from "./sandbox-references.ts";
import { type Sandbox, type SandboxBackend, SandboxError, type SandboxSpec } from "./sandbox.ts";

/** Where a sandbox is to be opened; with a handle, an open one is looked for first. */
export interface SandboxTarget {
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly handleId: string | null;
}

/**
 * A session's place for a sandbox: nothing, a target, or an open handle that it holds one reference on.
 *
 * Every change of the place starts a new era, so that a sandbox which finishes opening for an earlier one is let go.
 */
export class SandboxSlot {
  #target: SandboxTarget | null = null;
  #handle: Sandbox | null = null;
  #opening: Promise<Sandbox> | null = null;
  #releasing: Promise<void> = Promise.resolve();
  #era = 0;
  #holds = 0;

  get handle(): Sandbox | null {
    return this.#handle;
  }

  get backend(): string | null {
    return this.#handle?.backend ?? this.#target?.backend ?? null;
  }

  /** What a header records of the place. */
  get placement(): SandboxPlacement | null {
    const from = this.#handle ?? this.#target;
    if (from === null) return null;
    const handleId = this.#handle?.id ?? this.#target?.handleId ?? null;
    return { backend: from.backend, spec: { ...from.spec } as SandboxPlacement["spec"], handleId };
  }

  aim(target: SandboxTarget): void {
    checkBackendName(target.backend);
    this.#letGo();
    this.#target = { ...target, spec: Object.freeze({ ...target.spec }) };
  }

  bind(sandbox: Sandbox): void {
    if (sandbox === this.#handle) return;
    acquireSandbox(sandbox);
    this.#letGo();
    this.#handle = sandbox;
    this.#target = { backend: sandbox.backend, spec: sandbox.spec, handleId: null };
  }

  /** Takes the place of another slot: one more reference on its handle, or a copy of its target. */
  share(source: SandboxSlot): void {
    this.#target = source.#target;
    if (source.#handle !== null && isUsable(source.#handle)) this.bind(source.#handle);
    else if (source.#opening !== null) this.#open(source.#opening.then((sandbox) => taken(sandbox)));
  }

  async require(sessionId: string): Promise<Sandbox> {
    await this.#released();
    if (this.#handle !== null) {
      if (isUsable(this.#handle)) return this.#handle;
      throw new SandboxError("sandbox_closed", "session sandbox is closed");
    }
    if (this.#opening !== null) return this.#opening;
    if (this.#target === null) {
      throw new SessionError(
        "NO_SANDBOX",
        `Session ${show(sessionId)} has no sandbox; call session.to("local") or session.bindSandbox(sandbox) first.`,
      );
    }
    return this.#open(openTarget(this.#target));
  }

  /** Opens, and stays open until as many have let go as held on. */
  async hold(sessionId: string): Promise<AsyncDisposable> {
    this.#holds += 1;
    try {
      await this.require(sessionId);
    } catch (error) {
      this.#holds -= 1;
      throw error;
    }
    let held = true;
    return {
      [Symbol.asyncDispose]: async () => {
        if (!held) return;
        held = false;
        this.#holds -= 1;
        if (this.#holds === 0) await this.close();
      },
    };
  }

  async close(): Promise<void> {
    this.#letGo();
    await this.#released();
  }

  /** An own copy of the files, in a sandbox of the same backend. */
  async isolate(sessionId: string): Promise<Sandbox | null> {
    const target = this.#target;
    // A target that makes its own directory has no files yet, so each who opens it is apart already.
    if (this.#handle === null && this.#opening === null && target?.spec.workingDir === undefined) return null;
    const source = await this.require(sessionId);
    if (!source.capabilities.snapshot) {
      throw new SandboxError(
        "unsupported",
        `The ${source.backend} sandbox cannot copy its files; use fork() to share it, or another backend.`,
      );
    }
    const backend = await sandboxBackend(source.backend);
    const { workingDir: _workingDir, ...spec } = source.spec;
    const snapshot = await source.snapshot();
    const copy = await backend.open(spec);
    try {
      await copy.restore(snapshot);
    } catch (error) {
      await copy.close();
      throw error;
    } finally {
      await backend.deleteSnapshot?.(snapshot);
    }
    return copy;
  }

  #open(opening: Promise<Sandbox>): Promise<Sandbox> {
    const era = this.#era;
    this.#opening = opening.then(
      (sandbox) => {
        if (era !== this.#era) {
          this.#releaseLater(sandbox);
          throw new SandboxError("sandbox_closed", "The session's sandbox was closed while it was being opened.");
        }
        this.#handle = sandbox;
        this.#opening = null;
        return sandbox;
      },
      (error) => {
        if (era === this.#era) this.#opening = null;
        throw error;
      },
    );
    // Whoever asked hears of a failure; a fork that took the opening over may never ask.
    this.#opening.catch(() => {});
    return this.#opening;
  }

  #letGo(): void {
    this.#era += 1;
    const opening = this.#opening;
    if (opening !== null) {
      const settled = opening.then(
        () => {},
        () => {},
      );
      this.#releasing = Promise.all([this.#releasing, settled]).then(() => {});
    }
    this.#opening = null;
    if (this.#handle !== null) this.#releaseLater(this.#handle);
    this.#handle = null;
  }

  #releaseLater(sandbox: Sandbox): void {
    const released = releaseSandbox(sandbox);
    this.#releasing = Promise.all([this.#releasing, released]).then(() => {});
    this.#releasing.catch(() => {});
  }

  /** Waits for what was let go of; a failure of that is reported once. */
  async #released(): Promise<void> {
    const releasing = this.#releasing;
    try {
      await releasing;
    } catch (error) {
      if (this.#releasing === releasing) this.#releasing = Promise.resolve();
      throw error;
    }
  }
}

function taken(sandbox: Sandbox): Sandbox {
  acquireSandbox(sandbox);
  return sandbox;
}

async function openTarget({ backend: name, spec, handleId }: SandboxTarget): Promise<Sandbox> {
  const backend = await sandboxBackend(name);
  return taken((handleId === null ? null : await attached(backend, handleId, spec)) ?? (await backend.open(spec)));
}

/** The sandbox that was left open, or null where it is gone: then the session goes on in a new one. */
async function attached(backend: SandboxBackend, handleId: string, spec: SandboxSpec): Promise<Sandbox | null> {
  try {
    return (await backend.attach?.(handleId, spec)) ?? null;
  } catch (error) {
    if (error instanceof SandboxError && error.kind === "file_not_found") return null;
    throw error;
  }
}
