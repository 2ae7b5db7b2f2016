import { type Sandbox, SandboxError } from "./sandbox.ts";

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

/** The sandbox of an id that sessions of this process use already, or null. */
export function sandboxInUse(backend: string, id: string): Sandbox | null {
  const sandbox = inUse.get(keyOf(backend, id))?.deref();
  return sandbox !== undefined && isUsable(sandbox) ? sandbox : null;
}

function keyOf(backend: string, id: string): string {
  return JSON.stringify([backend, id]);
}
