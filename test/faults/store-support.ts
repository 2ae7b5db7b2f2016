import type { Entry } from "../../src/session/log/entry.ts";
import type { ReadOptions, SessionStore } from "../../src/session/store.ts";

/** One message. */
export const message = { type: "message", message: { role: "user", content: "hello" } } as const;

/** The content of a session. */
export async function entriesOf(store: SessionStore, id = "a", options: ReadOptions = {}): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id, options)) entries.push(entry);
  return entries;
}

/** Resolves to the error of an operation. */
export async function refusalOf(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const refusal = await work.then(
    () => ({ code: "done", message: "" }),
    (error: unknown) => error,
  );
  return refusal as { code: string; message: string };
}

/** Resolves once a condition holds. */
export async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`${what} did not come about`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
