import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FileFollower } from "../../src/interop/formats/follow-files.ts";
import { type ForeignFormat, foreignFormat, importFiles } from "../../src/interop/formats/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { PLAIN, PROGRAMS, SESSION, type Turn, turn } from "./foreign-conversations.ts";
import { entriesOf, linesOf, toldIn, writtenText } from "./foreign-samples.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "follow-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** The interruptions while a file is followed. */
type Interruption =
  /** The program writes this share of the rest of its file; it may end in the middle of a line. */
  | { readonly kind: "write"; readonly part: number }
  /** The follower polls after so many milliseconds. */
  | { readonly kind: "look"; readonly afterMs: number }
  | { readonly kind: "restart" | "import" | "together" | "replace" | "shorten" };

const interruption: fc.Arbitrary<Interruption> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.double({ min: 0.01, max: 0.5, noNaN: true }).map((part) => ({ kind: "write" as const, part })),
  },
  { weight: 3, arbitrary: fc.constantFrom(10, 1000).map((afterMs) => ({ kind: "look" as const, afterMs })) },
  { weight: 3, arbitrary: fc.constant({ kind: "look" as const, afterMs: 5000 }) },
  fc.constant({ kind: "look" as const, afterMs: 11 * 60 * 1000 }),
  fc.constantFrom("restart", "import", "together", "replace", "shorten").map((kind) => ({ kind }) as Interruption),
);

async function importAll(store: SessionStore, format: ForeignFormat, path: string): Promise<void> {
  for await (const step of importFiles({ store, userId: "ana" }, { format, path }))
    expect(step.report.lostLines.filter(({ reason }) => !reason.startsWith("it is cut off"))).toEqual([]);
}

/** The messages of each session of the file, their cost, and their export. */
async function sumOf(store: SessionStore, format: ForeignFormat) {
  const ids = (await store.list()).items.map(({ header }) => header.id).toSorted();
  return Promise.all(
    ids.map(async (id) => {
      const head = await store.head(id);
      // A title is at the position where it was first read, and the answer around it where it was complete.
      const lines = linesOf(await writtenText(format, store, id)).toSorted();
      return { id, told: await toldIn(store, id), usage: head?.usage, cost: head?.cost, name: head?.name, lines };
    }),
  );
}

async function follows(
  format: ForeignFormat,
  lines: readonly string[],
  interruptions: readonly Interruption[],
): Promise<void> {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const place = await mkdtemp(join(directory, "run-"));
  const path = join(place, format.name === "codex" ? `rollout-${SESSION}.jsonl` : `${SESSION}.jsonl`);
  await using store = openMemoryStore();
  const failures: unknown[] = [];
  const start = () =>
    new FileFollower(
      { store, userId: "ana" },
      [{ format, path: place }],
      { signal: new AbortController().signal, onFailure: (error) => failures.push(error) },
      Date.now(),
    );
  let follower = start();
  const other = start();
  let nowMs = Date.now();
  let written = 0;
  const look = async (afterMs: number): Promise<void> => {
    nowMs += afterMs;
    // New files are searched for in some of the polls only.
    for (let step = 0; step < 3; step++) await follower.poll(nowMs);
  };
  await writeFile(path, "");
  for (const each of interruptions) {
    if (each.kind === "write") {
      const until = Math.min(bytes.length, written + Math.ceil(each.part * (bytes.length - written)));
      await appendFile(path, bytes.subarray(written, until));
      written = until;
    } else if (each.kind === "look") await look(each.afterMs);
    else if (each.kind === "restart") follower = start();
    else if (each.kind === "import") await importAll(store, format, path);
    // Two followers and an import write to the store at the same time.
    else if (each.kind === "together")
      await Promise.all([follower.poll(nowMs), other.poll(nowMs), importAll(store, format, path)]);
    else if (each.kind === "replace") {
      await writeFile(join(place, "new"), bytes.subarray(0, written));
      await rename(join(place, "new"), path);
    } else {
      written = Math.floor(written / 2);
      await writeFile(path, bytes.subarray(0, written));
    }
  }
  await appendFile(path, bytes.subarray(written));
  await look(10);
  await look(5000);
  await look(11 * 60 * 1000);
  expect(failures).toEqual([]);
  await using whole = openMemoryStore();
  await importAll(whole, format, path);
  const expected = await sumOf(whole, format);
  expect(await sumOf(store, format)).toEqual(expected);
  await importAll(store, format, path);
  expect(await sumOf(store, format)).toEqual(expected);
  const entries = () => Promise.all(expected.map(({ id }) => entriesOf(store, id)));
  const before = await entries();
  await importAll(store, format, path);
  expect(await entries()).toEqual(before);
}

/** Cases that random runs have found. */
const FOUND: readonly (readonly [string, readonly Interruption[]])[] = [
  [
    "is shortened and idle for long before it is complete again",
    [
      { kind: "write", part: 0.23 },
      { kind: "look", afterMs: 5000 },
      { kind: "shorten" },
      { kind: "look", afterMs: 10 },
      { kind: "look", afterMs: 11 * 60 * 1000 },
    ],
  ],
  [
    "is imported while an answer is buffered",
    [{ kind: "write", part: 0.2 }, { kind: "look", afterMs: 10 }, { kind: "import" }],
  ],
];

test.for(FOUND)("a file that %s becomes the same session as by one import", async ([, interruptions]) => {
  const turns: Turn[] = [
    { ...PLAIN, answers: [2], others: 1 },
    { ...PLAIN, answers: [1, 1, 2], stops: "last", early: true, others: 2 },
  ];
  for (const [name, write] of PROGRAMS) {
    // Wherever the writes end.
    for (let more = 0; more < 10; more++) {
      const first: Interruption = { kind: "write", part: 0.02 + more / 40 };
      await follows(foreignFormat(name), write(turns), [first, ...interruptions]);
    }
  }
});

test("a follower learns which entries an import has added even if its own append was already stored", async () => {
  const turns: Turn[] = [{ ...PLAIN, answers: [0, 1], others: 2 }];
  const [[name, write]] = PROGRAMS as [(typeof PROGRAMS)[number]];
  await follows(foreignFormat(name), write(turns), [
    { kind: "write", part: 0.059535333978702816 },
    { kind: "write", part: 0.060247167868177146 },
    { kind: "look", afterMs: 10 },
    { kind: "write", part: 0.0855263157894737 },
    { kind: "write", part: 0.3803239352129575 },
    { kind: "import" },
  ]);
});

test.for(PROGRAMS)(
  "a followed file of %s becomes the same session as by one import, however it is interrupted",
  async ([name, write]) => {
    const turns = fc.array(turn, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(turns, fc.array(interruption, { maxLength: 16 }), (some, interruptions) =>
        follows(foreignFormat(name), write(some), interruptions),
      ),
      { numRuns: name === "claude-code" ? 60 : 20 },
    );
  },
);
