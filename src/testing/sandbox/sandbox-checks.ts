import assert from "node:assert/strict";
import { type Sandbox, SandboxError, type SandboxFailure } from "../../session/sandbox/sandbox.ts";

const WAIT_MS_MAX = 20_000;
const POLL_MS = 20;

/** Asserts that a call rejects with a `SandboxError` of a kind, and returns the error. */
export async function fails(call: Promise<unknown>, kind: SandboxFailure): Promise<SandboxError> {
  const error = await call.then(
    () => assert.fail(`the call succeeded, and should have failed with ${kind}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof SandboxError)) throw error;
  assert.equal(error.kind, kind, `it failed with ${error.kind} (${error.message}), not with ${kind}`);
  assert.equal(error.code, "SANDBOX_FAILED");
  assert.match(error.message, /\S/);
  return error;
}

/** The text of a file. */
export async function textOf(sandbox: Sandbox, path: string): Promise<string> {
  return new TextDecoder().decode(await sandbox.readFile(path));
}

/** The paths of all items below the root. */
export async function pathsOf(sandbox: Sandbox): Promise<string[]> {
  return (await sandbox.list(".", { recursive: true })).map(({ path }) => path);
}

/** Runs a command that must succeed, and returns its stdout. */
export async function shell(sandbox: Sandbox, command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.exec(command);
  assert.equal(exitCode, 0, `${command} ended with ${exitCode}: ${stderr}`);
  return stdout;
}

/** Waits until a running command has created a file. */
export async function appears(sandbox: Sandbox, path: string): Promise<void> {
  for (const deadline = Date.now() + WAIT_MS_MAX; !(await sandbox.exists(path)); ) {
    assert.ok(Date.now() < deadline, `${path} did not appear`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/**
 * A shell command that starts a process which holds a file lock until it is killed. `start` is the command, in which `HOLD` is replaced by
 * the command of the background process. The file `<lock>.ready` is created when the lock is held.
 */
export function holding(lock: string, start: string): string {
  return start.replace(
    "HOLD",
    `flock ${lock} sh -c "trap '' TERM HUP INT; touch ${lock}.ready; while :; do sleep 1; done"`,
  );
}

/** Asserts that no process holds the lock any more. */
export async function isFree(sandbox: Sandbox, lock: string): Promise<void> {
  const { exitCode } = await sandbox.exec(["flock", "--nonblock", lock, "true"]);
  assert.equal(exitCode, 0, "a process of the command still runs");
}
