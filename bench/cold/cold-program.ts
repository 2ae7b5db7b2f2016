import type { OpenCold } from "./cold-session.ts";

/** The first action of a process: one operation of a contender. */
export interface ColdInput {
  readonly contender: ColdContender;
  readonly operation: "append" | "context" | "fork";
  readonly folder: string;
  readonly messages: number;
  /** The key that the appending process returned; null for that process. */
  readonly key: string | null;
}

/** The result of the process. */
export interface ColdOutput {
  readonly key: string;
  /** The time of imports and opening, which are not part of the operation. */
  readonly openMs: number;
  readonly timeMs: number;
}

/** Imported dynamically, so that a process does not load the dependencies of other contenders. */
const contenders = {
  "bare file": async () => (await import("./cold-bare.ts")).openBareFile,
  "bare SQLite": async () => (await import("./cold-bare.ts")).openBareSqlite,
  pi: async () => (await import("./cold-pi.ts")).openPi,
  sqlite: async () => (await import("./cold-skein.ts")).openSkein("sqlite"),
  jsonl: async () => (await import("./cold-skein.ts")).openSkein("jsonl"),
} satisfies Record<string, () => Promise<OpenCold>>;

/** The names of the contenders. */
export type ColdContender = keyof typeof contenders;

const { contender, operation, folder, messages, key } = JSON.parse(process.argv[2] as string) as ColdInput;
const startedAt = performance.now();
const open = await contenders[contender]();
const session = await open(folder, key);
const openedAt = performance.now();
if (operation === "append") await session.append(messages);
else if (operation === "fork") await session.fork();
else if ((await session.context()) !== messages) throw new Error(`The context of ${contender} is not whole.`);
const timeMs = performance.now() - openedAt;
await session.close();
process.stdout.write(JSON.stringify({ key: session.key, openMs: openedAt - startedAt, timeMs } satisfies ColdOutput));
// A library may leave timers behind that cannot be stopped.
process.exit(0);
