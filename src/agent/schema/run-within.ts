import { type Context, createContext, Script } from "node:vm";

/** A computation that was stopped because it took too long. */
export class TookTooLong extends Error {}

const script = new Script("compute()");
let context: (Context & { compute: (() => unknown) | null }) | null = null;

/**
 * Runs a synchronous computation that may contain a slow regular expression, and stops it after a time limit. It blocks
 * the thread until then; partial changes are not rolled back.
 *
 * @throws {TookTooLong} after `timeoutMs`.
 */
export function runWithin<T>(timeoutMs: number, compute: () => T): T {
  // Node can interrupt only a script, even during a regular expression match.
  context ??= Object.assign(createContext({ compute: null }), { compute: null });
  const outer = context.compute;
  context.compute = compute;
  try {
    return script.runInContext(context, { timeout: timeoutMs }) as T;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    throw new TookTooLong(`It took longer than ${timeoutMs} ms.`, { cause: error });
  } finally {
    context.compute = outer;
  }
}
