import { type JsonValue, sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import { sandboxBackend } from "./sandbox-backends.ts";
import { type Sandbox, type SandboxBackend, SandboxError, type SandboxSpec } from "./sandbox.ts";

/** Where a sandbox is to be opened; with a handle, an open one is looked for first. */
export interface SandboxTarget {
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly handleId: string | null;
}

/**
 * A sandbox on its way, with a count of those who wait for it.
 *
 * When it arrives, each of them has a reference on it. Where all have let go meanwhile, it is closed.
 */
export class SandboxOpening {
  readonly opened: Promise<Sandbox>;
  readonly #ended: Promise<void>;
  #references = 1;
  #sandbox: Sandbox | null = null;
  #closed: Promise<void> = Promise.resolve();

  /** The sandbox comes with a reference on it; `onEnd` is called in the very step in which it comes, or fails to. */
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
    // Those who wait hear of a failure; there may be none.
    this.opened.catch(() => {});
    this.#ended.catch(() => {});
  }

  /** Joins those who wait. */
  acquire(): void {
    if (this.#sandbox === null) this.#references += 1;
    else acquireSandbox(this.#sandbox);
  }

  /** Leaves those who wait; for the last, resolves once the sandbox has come and is closed. */
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

/** The openings that look for a sandbox which was left open, so that two do not end up with two handles on it. */
const attaching = new Map<string, SandboxOpening>();

/** Begins to open what a target asks for, with one reference for the caller. */
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
  // Taken in the same step in which it was found, so that nobody can close it in between.
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

/** The sandbox that was left open, or null where it is gone: then the session goes on in a new one. */
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
/** The sandboxes that someone has a reference on, by backend and id. */
const inUse = new Map<string, WeakRef<Sandbox>>();

/** Takes a reference. @throws {SandboxError} `sandbox_closed` when the sandbox is closed or about to be. */
export function acquireSandbox(sandbox: Sandbox): void {
  if (!isUsable(sandbox)) throw new SandboxError("sandbox_closed", "The sandbox is closed; open a new one.");
  counts.set(sandbox, (counts.get(sandbox) ?? 0) + 1);
  inUse.set(keyOf(sandbox.backend, sandbox.id), new WeakRef(sandbox));
}

/** Gives a reference back; the last one closes the sandbox. */
export async function releaseSandbox(sandbox: Sandbox): Promise<void> {
  const left = (counts.get(sandbox) ?? 1) - 1;
  counts.set(sandbox, left);
  if (left > 0) return;
  closing.add(sandbox);
  const key = keyOf(sandbox.backend, sandbox.id);
  if (inUse.get(key)?.deref() === sandbox) inUse.delete(key);
  await sandbox.close();
}

/** Whether a reference can still be taken. */
export function isUsable(sandbox: Sandbox): boolean {
  return !sandbox.closed && !closing.has(sandbox);
}

/** The sandbox of an id that sessions of this process use already, or null. One whose commands reach something else is another. */
function sandboxInUse(backend: string, id: string, spec: SandboxSpec): Sandbox | null {
  const sandbox = inUse.get(keyOf(backend, id))?.deref();
  if (sandbox === undefined || !isUsable(sandbox)) return null;
  return sameJson(reachOf(sandbox.spec), reachOf(spec)) ? sandbox : null;
}

/** What of a spec says what commands can reach and use. */
function reachOf({ isolation, network, limits, allowPaths }: SandboxSpec): readonly JsonValue[] {
  return [isolation ?? null, network ?? null, { ...limits }, [...(allowPaths ?? [])]];
}

function keyOf(backend: string, id: string): string {
  return JSON.stringify([backend, id]);
}
