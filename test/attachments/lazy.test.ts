import { expect, test } from "vitest";
import { exportSession } from "../../src/export/index.ts";
import { createHeader, SessionManager, SessionTree } from "../../src/index.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { MemoryBlobs } from "../../src/stores/memory/memory-blobs.ts";
import { carriers, holds, sampleBytes } from "../../src/testing/store/blob-cases.ts";
import { user } from "../../src/testing/store/drafts.ts";
import { collect } from "../../src/testing/store/store-checks.ts";
import { openRunServer } from "../http/runs-server.ts";

/** More characters than references take, and fewer than a picture. */
const ANSWER_CHARACTERS_MAX = 12_000;

test("listings, trees, states, transcripts, searches, streams, forks and requests over HTTP read no bytes of images and files", async () => {
  const blobs = new MemoryBlobs(() => new Date());
  const read = blobs.read.bind(blobs);
  let reads = 0;
  blobs.read = (...args) => {
    reads += 1;
    return read(...args);
  };
  await using store = openMemoryStore({ blobs });
  const manager = new SessionManager({ store });
  await store.create(createHeader({ id: "s", userId: "ann" }));
  await store.append("s", [user("Look:", { id: "1" }), ...carriers.map(([, draft]) => draft)]);
  const { client } = await openRunServer({ store });
  const tree = await SessionTree.on(store, "s");
  const watched = store.watch("s", { after: -1 })[Symbol.asyncIterator]();
  const answers: unknown[] = [
    await store.list(),
    await store.search("Look"),
    await collect(store.read("s")),
    (await store.readJson("s")).join(""),
    [await watched.next(), await watched.next()],
    await store.fork("s", createHeader({ id: "t", userId: "ann" })),
    await digestOf(store, "s"),
    await tree.buildContext(),
    await tree.getTree(),
    await manager.list(),
    (await collect(exportSession(store, "s", { format: "markdown" }))).join(""),
    (await collect(exportSession(store, "s", { format: "jsonl", onBlob: () => {} }))).join(""),
    await client.sessions.list(),
    await client.sessions.get("s"),
    await client.sessions.state("s"),
    await client.sessions.entries("s"),
    await client.sessions.tree("s"),
    await client.sessions.path("s"),
    await client.search("Look"),
  ];
  await watched.return?.();
  await store.sweepBlobs({ graceMs: 0 });
  for (const answer of answers) expect(JSON.stringify(answer)?.length ?? 0).toBeLessThan(ANSWER_CHARACTERS_MAX);
  expect(reads).toBe(0);
  await holds(store, "s", sampleBytes(1));
  expect(reads).toBe(1);
});
