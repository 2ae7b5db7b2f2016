import { type JsonValue, sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { sandboxBackend } from "./sandbox-backends.ts";
import { type Sandbox, type SandboxBackend, SandboxError, type SandboxSpec } from "./sandbox.ts";

/** Where to open a sandbox; with a handle, an open one is looked for first. */
export interface SandboxTarget {
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly handleId: string | null;
}

/**
 * A sandbox that is being opened, with a count of its waiters.
 *
 * When it is open, each waiter has a reference to it. If all waiters have released it meanwhile, it is closed.
 */
export class SandboxOpening {
  readonly opened: Promise<Sandbox>;
  readonly #ended: Promise<void>;
  #references = 1;
  #sandbox: Sandbox | null = null;
  #closed: Promise<void> = Promise.resolve();

  /** `opening` resolves to a sandbox with one reference; `onEnd` is called synchronously when it resolves or rejects. */
  constructor(opening: Promise<Sandbox>, onEnd: () => void = () => {}) {
    this.opened = opening.then(
      (sandbox) => {
        onEnd();
        return this.#arrive(sandbox);
      },
      (error) => {
        onEnd();
        throw error;
      },
    );
    this.#ended = this.opened.then(
      () => this.#closed,
      () => {},
    );
    // Waiters receive the error from `opened`; without waiters it must not be an unhandled rejection.
    this.opened.catch(() => {});
    this.#ended.catch(() => {});
  }

  /** Adds a waiter. */
  acquire(): void {
    if (this.#sandbox === null) this.#references += 1;
    else acquireSandbox(this.#sandbox);
  }

  /** Removes a waiter; for the last one, resolves after the sandbox was opened and closed. */
  async release(): Promise<void> {
    if (this.#sandbox !== null) return releaseSandbox(this.#sandbox);
    this.#references -= 1;
    if (this.#references === 0) await this.#ended;
  }

  #arrive(sandbox: Sandbox): Sandbox {
    this.#sandbox = sandbox;
    for (let i = 1; i < this.#references; i++) acquireSandbox(sandbox);
    if (this.#references === 0) this.#closed = releaseSandbox(sandbox);
    return sandbox;
  }
}

/** The openings in progress that attach to an open sandbox, so that concurrent ones share one handle. */
const attaching = new Map<string, SandboxOpening>();

/** Starts to open a target, with one reference for the caller. */
export function openSandbox(target: SandboxTarget): SandboxOpening {
  if (target.handleId === null) return new SandboxOpening(open(target));
  const key = JSON.stringify([target.backend, target.handleId, ...reachOf(target.spec)]);
  const known = attaching.get(key);
  if (known !== undefined) {
    known.acquire();
    return known;
  }
  const opening = new SandboxOpening(open(target), () => attaching.delete(key));
  attaching.set(key, opening);
  return opening;
}

async function open({ backend: name, spec, handleId }: SandboxTarget): Promise<Sandbox> {
  const backend = await sandboxBackend(name);
  const known = handleId === null || backend.attach === undefined ? null : sandboxInUse(name, handleId, spec);
  // Acquired synchronously after the lookup, so that it cannot be closed in between.
  const sandbox = known ?? (await attachOrOpen(name, backend, handleId, spec));
  acquireSandbox(sandbox);
  return sandbox;
}

async function attachOrOpen(
  name: string,
  backend: SandboxBackend,
  handleId: string | null,
  spec: SandboxSpec,
): Promise<Sandbox> {
  try {
    return (handleId === null ? null : await attach(backend, handleId, spec)) ?? (await backend.open(spec));
  } catch (error) {
    if (error instanceof SessionError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SandboxError("os_error", `The ${name} sandbox could not be opened: ${reason.replace(/\.$/, "")}.`, {
      cause: error,
    });
  }
}

/** Attaches to an open sandbox; null if it no longer exists: then the session continues in a new one. */
async function attach(backend: SandboxBackend, id: string, spec: SandboxSpec): Promise<Sandbox | null> {
  try {
    return (await backend.attach?.(id, spec)) ?? null;
  } catch (error) {
    if (error instanceof SandboxError && error.kind === "file_not_found") return null;
    throw error;
  }
}

const counts = new WeakMap<Sandbox, number>();
const closing = new WeakSet<Sandbox>();
/** The sandboxes with at least one reference, by backend and id. */
const inUse = new Map<string, WeakRef<Sandbox>>();

/** Adds a reference. @throws {SandboxError} `sandbox_closed` if the sandbox is closed or closing. */
export function acquireSandbox(sandbox: Sandbox): void {
  if (!isUsable(sandbox)) throw new SandboxError("sandbox_closed", "The sandbox is closed; open a new one.");
  counts.set(sandbox, (counts.get(sandbox) ?? 0) + 1);
  inUse.set(keyOf(sandbox.backend, sandbox.id), new WeakRef(sandbox));
}

/** Removes a reference; the last one closes the sandbox. */
export async function releaseSandbox(sandbox: Sandbox): Promise<void> {
  const left = (counts.get(sandbox) ?? 1) - 1;
  counts.set(sandbox, left);
  if (left > 0) return;
  closing.add(sandbox);
  const key = keyOf(sandbox.backend, sandbox.id);
  if (inUse.get(key)?.deref() === sandbox) inUse.delete(key);
  await sandbox.close();
}

/** Whether a reference can still be added. */
export function isUsable(sandbox: Sandbox): boolean {
  return !sandbox.closed && !closing.has(sandbox);
}

/**
 * The sandbox with an id that sessions of this process already use, or null. The reach must be the same, too.
 */
function sandboxInUse(backend: string, id: string, spec: SandboxSpec): Sandbox | null {
  const sandbox = inUse.get(keyOf(backend, id))?.deref();
  if (sandbox === undefined || !isUsable(sandbox)) return null;
  return sameJson(reachOf(sandbox.spec), reachOf(spec)) ? sandbox : null;
}

/** The fields of a spec that determine what commands can reach and use. */
function reachOf({ isolation, network, limits, allowPaths }: SandboxSpec): readonly JsonValue[] {
  return [isolation ?? null, network ?? null, { ...limits }, [...(allowPaths ?? [])]];
}

function keyOf(backend: string, id: string): string {
  return JSON.stringify([backend, id]);
}
