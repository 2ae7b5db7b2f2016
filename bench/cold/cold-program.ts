import type { OpenCold } from "./cold-session.ts";

/** What a process is told to do first: one operation of a contender. */
export interface ColdInput {
  readonly contender: ColdContender;
  readonly operation: "append" | "context" | "fork";
  readonly folder: string;
  readonly messages: number;
  /** What the process that appended has said; null for that one. */
  readonly key: string | null;
}

/** What it answers. */
export interface ColdOutput {
  readonly key: string;
  /** Imports and opening, which are not part of the operation. */
  readonly openMs: number;
  readonly timeMs: number;
}

/** Each is imported only where it is asked for: what another one needs is not for it to load. */
const contenders = {
  "bare file": async () => (await import("./cold-bare.ts")).openBareFile,
  "bare SQLite": async () => (await import("./cold-bare.ts")).openBareSqlite,
  pi: async () => (await import("./cold-pi.ts")).openPi,
  sqlite: async () => (await import("./cold-skein.ts")).openSkein("sqlite"),
  jsonl: async () => (await import("./cold-skein.ts")).openSkein("jsonl"),
} satisfies Record<string, () => Promise<OpenCold>>;

/** Who is measured. */
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
// A library may leave timers behind that nobody can stop.
process.exit(0);
