import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { FindBlob } from "../../session/blob.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import type { ContentPart } from "../../session/message.ts";
import type { SessionStore } from "../../session/store.ts";
import { user } from "./drafts.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { entriesOf, headOf, make, refuses, unchanged } from "./store-checks.ts";

const HASH = /^sha256:[0-9a-f]{64}$/;

/** Bytes that no other seed gives. */
export function sampleBytes(seed: number, length = 10_000): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed * 2654435761 + 1;
  for (let index = 0; index < length; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

/** A picture as a part of a message. */
export function picture(bytes: Uint8Array): ContentPart {
  return { type: "image", mediaType: "image/png", name: "a.png", data: Buffer.from(bytes).toString("base64") };
}

/** A user's message with a picture. */
export function pictured(bytes: Uint8Array, id?: string): EntryDraft {
  const content: ContentPart[] = [{ type: "text", text: "Look:" }, picture(bytes)];
  return { type: "message", message: { role: "user", content }, ...(id === undefined ? {} : { id }) };
}

/** The name of the blob with these bytes. */
export function nameOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** Asserts that a session gives these bytes back. */
export async function holds(store: SessionStore, sessionId: string, bytes: Uint8Array): Promise<void> {
  const blob = await store.blob(sessionId, nameOf(bytes));
  assert.ok(blob !== null, `session ${sessionId} has no blob ${nameOf(bytes)}`);
  assert.equal(blob.size, bytes.byteLength);
  assert.ok(Buffer.from(await blob.bytes()).equals(bytes), "the bytes of the blob are others");
}

/** The blobs that an entry names, wherever they are in it. */
export function blobsIn(entry: Entry): string[] {
  return [...JSON.stringify(entry).matchAll(/"(sha256:[0-9a-f]{64})"/g)].map(([, name]) => name as string);
}

const image = sampleBytes(1);
const data = image.toString("base64");
const cut = { type: "image", mediaType: "image/png", name: "a.png", blob: nameOf(image), bytes: image.length } as const;

/** A draft of each type that can carry data. */
export const carriers: readonly (readonly [what: string, draft: EntryDraft])[] = [
  ["a message", pictured(image)],
  [
    "the result of a call",
    { type: "message", message: { role: "tool", toolCallId: "c", name: "look", content: [picture(image)] } },
  ],
  [
    "the blocks of a provider",
    {
      type: "message",
      message: {
        role: "assistant",
        content: "Here.",
        providerData: [{ type: "image", source: { data } }, { url: `data:image/png;base64,${data}` }],
      },
    },
  ],
  ["a custom message", { type: "custom_message", customType: "note", content: [picture(image)], display: true }],
  ["queued input", { type: "queued", runId: "r", kind: "steer", content: [picture(image)] }],
  ["the input of a request", { type: "run_request", runId: "q", input: [picture(image)], id: "run:q" }],
  [
    "the messages of a request",
    { type: "run_request", runId: "m", messages: [{ role: "user", content: [picture(image)] }], id: "run:m" },
  ],
  [
    "an edit of the context",
    { type: "context_edit", targetId: "1", message: { role: "user", content: [picture(image)] } },
  ],
  ["a line of another program", { type: "custom", customType: "foreign.codex", data: { line: `{"image":"${data}"}` } }],
];

/** Cases: the data of images and files. Each is skipped for a store that keeps it in entries. */
export const blobCases: readonly StoreCase[] = [
  {
    name: "stores the data of an image beside the log, and returns its very bytes",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const { entries } = await store.append("a", [pictured(image, "1")]);
      const expected = { role: "user", content: [{ type: "text", text: "Look:" }, cut] };
      assert.deepEqual((entries[0] as { message?: unknown }).message, expected);
      assert.deepEqual(await entriesOf(store, "a"), entries);
      await holds(store, "a", image);
    },
  },
  {
    name: "stores the bytes that are given as a Uint8Array, whatever becomes of it afterwards",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const [large, small] = [sampleBytes(2), sampleBytes(3, 12)];
      const [given, tiny] = [Uint8Array.from(large), Uint8Array.from(small)];
      const part = (bytes: Uint8Array): ContentPart =>
        ({ type: "file", mediaType: "text/plain", data: bytes }) as unknown as ContentPart;
      const appended = store.append("a", [
        { type: "message", message: { role: "user", content: [part(given), part(tiny)] } },
      ]);
      given.fill(0);
      tiny.fill(0);
      const { entries } = await appended;
      await holds(store, "a", large);
      assert.match(JSON.stringify(entries[0]), new RegExp(`"data":"${small.toString("base64")}"`));
    },
  },
  {
    name: "leaves small data, and data that its bytes do not give back, in the entry",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const small = { ...picture(sampleBytes(4, 4096)) };
      const broken = {
        type: "image",
        mediaType: "image/png",
        data: `${data.slice(0, 76)}\n${data.slice(76)}`,
      } as const;
      const content = [small, broken] as const;
      const { entries } = await store.append("a", [{ type: "message", message: { role: "user", content } }]);
      assert.deepEqual((entries[0] as { message?: { content?: unknown } }).message?.content, content);
    },
  },
  ...carriers.map(
    ([what, draft]): StoreCase => ({
      name: `takes the data out of ${what}`,
      needs: "blobs",
      async run({ store }) {
        await make(store, "a");
        await store.append("a", [user("Look:", { id: "1" })]);
        const { entries } = await store.append("a", [draft]);
        const text = JSON.stringify(entries);
        assert.ok(!text.includes(data.slice(0, 100)), "the entry has the data");
        assert.ok(text.length < 1000, `the entry has ${text.length} characters`);
        assert.ok(blobsIn(entries[0] as Entry).every((name) => name === nameOf(image)));
        assert.ok(blobsIn(entries[0] as Entry).length > 0, "the entry does not name the blob");
        await holds(store, "a", image);
      },
    }),
  ),
  {
    name: "keeps the blobs of a session that is created with entries, and of its forks",
    needs: "blobs",
    async run({ store }) {
      const later = sampleBytes(5);
      const { header } = await make(store, "a");
      await store.append("a", [pictured(image)]);
      await store.fork("a", { ...header, id: "b" });
      await store.fork("b", { ...header, id: "c" });
      await store.append("c", [pictured(later)]);
      await store.delete("a");
      await holds(store, "b", image);
      await holds(store, "c", image);
      await holds(store, "c", later);
      await store.create({ ...header, id: "d" }, { entries: [pictured(image, "1")] });
      await holds(store, "d", image);
    },
  },
  {
    name: "does not show the blobs of one session to another, and refuses a reference to them with nothing written",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      await make(store, "b");
      await store.append("a", [pictured(image)]);
      assert.equal(await store.blob("b", nameOf(image)), null);
      assert.equal(await store.blob("nowhere", nameOf(image)), null);
      const message = { role: "user", content: [cut] } as const;
      await unchanged(store, "b", () => refuses(store.append("b", [{ type: "message", message }]), "BLOB_NOT_FOUND"));
      const hidden = {
        role: "assistant",
        content: "",
        providerData: { "skein:blob": cut.blob, bytes: cut.bytes },
      } as const;
      await unchanged(store, "b", () =>
        refuses(store.append("b", [{ type: "message", message: hidden }]), "BLOB_NOT_FOUND"),
      );
      await refuses(
        store.create({ ...(await headOf(store, "a")).header, id: "c" }, { entries: [{ type: "message", message }] }),
        "BLOB_NOT_FOUND",
      );
      assert.equal(await store.head("c"), null);
    },
  },
  {
    name: "refuses to create a session whose id is in use, and neither stores its data nor tells which blobs the other one has",
    needs: "blobs",
    async run({ store }) {
      const other = sampleBytes(12);
      for (const [id, deleted] of [
        ["a", false],
        ["b", true],
      ] as const) {
        const { header } = await make(store, id);
        await store.append(id, [pictured(image)]);
        if (deleted) await store.delete(id);
        const before = await store.sweepBlobs();
        const message = (part: ContentPart): EntryDraft => ({
          type: "message",
          message: { role: "user", content: [part] },
        });
        for (const part of [picture(other), cut, { ...cut, blob: nameOf(other) }])
          await refuses(store.create(header, { entries: [message(part)] }), "SESSION_EXISTS");
        assert.deepEqual(await store.sweepBlobs(), before);
      }
    },
  },
  {
    name: "refuses references that are none, and those with another number of bytes",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      await store.append("a", [pictured(image)]);
      const wrong = [{ blob: "sha256:x" }, { bytes: 1 }, { bytes: -1 }, { data }, { blob: 7 }];
      for (const fields of wrong) {
        const message = { role: "user", content: [{ ...cut, ...fields }] } as never;
        await unchanged(store, "a", () => refuses(store.append("a", [{ type: "message", message }]), "INVALID_ENTRY"));
      }
    },
  },
  {
    name: "accepts a reference to a blob of the session, and one that was stored before",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const ref = await store.putBlob("a", image);
      assert.deepEqual(ref, { blob: nameOf(image), bytes: image.length });
      const draft: EntryDraft = { type: "message", message: { role: "user", content: [cut] } };
      await store.append("a", [draft]);
      await store.append("a", [draft]);
      assert.equal((await headOf(store, "a")).version, 2);
      await holds(store, "a", image);
    },
  },
  {
    name: "takes an append that is repeated with data, a reference or the other form as the same",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const message = (content: readonly ContentPart[]): EntryDraft => ({
        type: "message",
        id: "1",
        message: { role: "user", content },
      });
      const first = await store.append("a", [message([picture(image)])]);
      for (const again of [message([picture(image)]), message([cut])])
        assert.deepEqual((await store.append("a", [again])).entries, first.entries);
      await refuses(store.append("a", [message([picture(sampleBytes(6))])]), "ENTRY_EXISTS");
      await refuses(store.append("a", [message([{ ...cut, name: "b.png" }])]), "ENTRY_EXISTS");
      assert.equal((await headOf(store, "a")).version, 1);
    },
  },
  {
    name: "stores a stream of any size, and reads ranges of it",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const bytes = sampleBytes(7, 3_000_000);
      async function* chunks(): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < bytes.length; at += 70_001) yield bytes.subarray(at, at + 70_001);
      }
      const ref = await store.putBlob("a", chunks());
      assert.match(ref.blob, HASH);
      await holds(store, "a", bytes);
      const blob = await store.blob("a", ref);
      for (const [start, end] of [
        [0, 1],
        [1_048_570, 1_048_590],
        [2_999_999, 3_000_000],
        [5, 5],
        [10, 2_500_000],
      ] as const) {
        const read = await blob?.bytes({ start, end });
        assert.ok(
          read !== undefined && Buffer.from(read).equals(bytes.subarray(start, end)),
          `bytes ${start} to ${end}`,
        );
      }
      await refuses(async () => blob?.bytes({ start: 3_000_001 }), "INVALID_OPTION");
      await store.putBlob("a", new Uint8Array(0));
      await holds(store, "a", new Uint8Array(0));
    },
  },
  {
    name: "stores nothing of a stream that fails",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      const bytes = sampleBytes(8, 2_000_000);
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield bytes;
        throw new RangeError("the connection was lost");
      }
      await assert.rejects(store.putBlob("a", failing()), RangeError);
      assert.equal(await store.blob("a", nameOf(bytes)), null);
      await refuses(store.putBlob("nowhere", bytes), "SESSION_NOT_FOUND");
      await refuses(store.putBlob("a", "text" as never), "INVALID_OPTION");
    },
  },
  {
    name: "fetches the blobs of entries that come from elsewhere before it stores the entries",
    needs: "blobs",
    async run({ store }) {
      const { header } = await make(store, "a");
      await store.append("a", [pictured(image)]);
      const findBlob: FindBlob = (blob) => store.blob("a", blob);
      const entries: EntryDraft[] = [{ type: "message", message: { role: "user", content: [cut] }, parentId: null }];
      await store.create({ ...header, id: "b" }, { entries, findBlob });
      await holds(store, "b", image);
      await make(store, "c");
      await store.append("c", entries, { findBlob });
      await holds(store, "c", image);
    },
  },
  {
    name: "sweeps the blobs that no log refers to, and keeps those of forks, of deleted sessions and of the last day",
    needs: "blobs",
    async run({ store }) {
      const [forked, deleted, unused] = [sampleBytes(9), sampleBytes(10), sampleBytes(11, 1_500_000)];
      const { header } = await make(store, "a");
      await store.append("a", [pictured(forked)]);
      await store.fork("a", { ...header, id: "b" });
      await make(store, "c");
      await store.append("c", [pictured(deleted)]);
      await store.delete("a");
      await store.delete("c");
      await store.putBlob("b", unused);
      assert.deepEqual(await store.sweepBlobs(), { blobs: 3, removed: 0, bytes: 0 });
      await store.purge({ sessionId: "a" });
      assert.deepEqual(await store.sweepBlobs({ graceMs: 0 }), { blobs: 3, removed: 1, bytes: unused.length });
      assert.equal(await store.blob("b", nameOf(unused)), null);
      await holds(store, "b", forked);
      await store.undelete("c");
      await holds(store, "c", deleted);
    },
  },
  {
    name: "of an append and a sweep at the same time, loses no blob of an entry",
    needs: "blobs",
    async run({ store }) {
      await make(store, "a");
      await store.putBlob("a", image);
      const sweeping = store.sweepBlobs({ graceMs: 0 });
      for (let round = 0; round < 20; round++) await store.append("a", [pictured(image)]);
      await sweeping;
      await holds(store, "a", image);
    },
  },
  {
    name: "shows blobs to a second handle, and stores equal bytes of many writers once",
    needs: "blobs",
    async run(context) {
      const { store } = context;
      if (!store.capabilities.shared) return;
      const other = await openAgain(context);
      await make(store, "a");
      await Promise.all(
        [...Array(8)].map((_, index) => (index % 2 === 0 ? store : other).append("a", [pictured(image)])),
      );
      await holds(other, "a", image);
      assert.equal((await headOf(other, "a")).version, 8);
    },
  },
];
