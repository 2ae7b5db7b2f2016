import { type Context, createContext, Script } from "node:vm";

/** A computation was given up because it took too long. */
export class TookTooLong extends Error {}

const script = new Script("compute()");
let context: (Context & { compute: (() => unknown) | null }) | null = null;

/**
 * Runs a synchronous computation that a slow regular expression may be part of, and gives it up after a time. It blocks
 * the thread until then. Whatever it was changing is left as it is.
 *
 * @throws {TookTooLong} after `timeoutMs`.
 */
export function runWithin<T>(timeoutMs: number, compute: () => T): T {
  // A script is the only code that Node ends from outside, even inside a match of a regular expression.
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
