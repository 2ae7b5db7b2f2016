import { type Sandbox, SandboxError } from "./sandbox.ts";

const counts = new WeakMap<Sandbox, number>();
const closing = new WeakSet<Sandbox>();

/** Takes a reference. @throws {SandboxError} `sandbox_closed` when the sandbox is closed or about to be. */
export function acquireSandbox(sandbox: Sandbox): void {
  if (!isUsable(sandbox)) throw new SandboxError("sandbox_closed", "The sandbox is closed; open a new one.");
  counts.set(sandbox, (counts.get(sandbox) ?? 0) + 1);
}

/** Gives a reference back; the last one closes the sandbox. */
export async function releaseSandbox(sandbox: Sandbox): Promise<void> {
  const left = (counts.get(sandbox) ?? 1) - 1;
  counts.set(sandbox, left);
  if (left > 0) return;
  closing.add(sandbox);
  await sandbox.close();
}

/** Whether a reference can still be taken. */
export function isUsable(sandbox: Sandbox): boolean {
  return !sandbox.closed && !closing.has(sandbox);
}
