import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { BlobRef, FindBlob, StoredBlob } from "../../src/session/blob.ts";
import { createHeader, type EntryDraft, type SessionStore } from "../../src/index.ts";
import { exportSession, importSession } from "../../src/export/index.ts";
import { foreignFormat, importForeign, writeForeign } from "../../src/interop/formats/index.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { copySession } from "../../src/stores/copy/copy-session.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { carriers, holds, nameOf, pictured, sampleBytes } from "../../src/testing/store/blob-cases.ts";
import { collect } from "../../src/testing/store/store-checks.ts";
import { runHere } from "../cli/run-skein.ts";
import { makeDirectory, openIn } from "../moving/sample-store.ts";
import { backends } from "../store-backends.ts";

const TIME = "2026-01-02T03:04:05.678Z";
const header = createHeader({ id: "s", createdAt: TIME });
const drafts: readonly EntryDraft[] = carriers.map(([, draft], index) =>
  draft.type === "context_edit"
    ? { ...draft, id: String(index), timestamp: TIME, targetId: "0" }
    : { ...draft, id: draft.id ?? String(index), timestamp: TIME },
);

async function linesOf(store: SessionStore, id = "s"): Promise<readonly string[]> {
  return (await collect(exportSession(store, id, { format: "jsonl" }))).join("").trimEnd().split("\n");
}

async function filled(store: SessionStore): Promise<SessionStore> {
  await store.create(header);
  await store.append("s", drafts);
  return store;
}

test.each(backends)(
  "every kind of entry with data is exported from the $name store as it was given, after copies and imports too",
  async (backend) => {
    await using inline = await filled(openMemoryStore({ inlineMax: 1_000_000 }));
    const given = await linesOf(inline);
    const store = await filled(await openIn(backend));
    expect(await linesOf(store)).toEqual(given);
    for (const other of backends) {
      const target = await openIn(other);
      await copySession(store, target, "s");
      expect(await linesOf(target)).toEqual(given);
    }
    // Older logs keep their base64, and a copy moves it out.
    const moved = await openIn(backend);
    await copySession(inline, moved, "s");
    expect((await moved.readJson("s")).join("").length).toBeLessThan(5000);
    expect(await linesOf(moved)).toEqual(given);
    const imported = await openIn(backend);
    await importSession(imported, given, { trust: true });
    expect((await imported.readJson("s")).join("").length).toBeLessThan(5000);
    expect(await linesOf(imported)).toEqual(given);
  },
);

test("an export with onBlob has references, tells each blob once, and an import checks the bytes that it finds", async () => {
  await using store = openMemoryStore();
  const [one, other] = [sampleBytes(1), sampleBytes(2, 30_000)];
  await store.create(header);
  await store.append("s", [pictured(one), pictured(other), pictured(one)]);
  const told: StoredBlob[] = [];
  const onBlob = (blob: StoredBlob) => void told.push(blob);
  for (const sanitize of [false, true]) {
    told.length = 0;
    const text = (await collect(exportSession(store, "s", { format: "jsonl", onBlob, sanitize }))).join("");
    expect(text.length).toBeLessThan(3000);
    expect(told.map(({ blob }) => blob)).toEqual([nameOf(one), nameOf(other)]);
    const lines = text.trimEnd().split("\n");
    const findBlob: FindBlob = async (blob) => told.find((each) => each.blob === blob) ?? null;
    await using target = openMemoryStore();
    await importSession(target, lines, { findBlob });
    for (const bytes of [one, other]) await holds(target, "s", bytes);
    await using wrong = openMemoryStore();
    const tampered: FindBlob = async (blob) =>
      ({ ...(await store.blob("s", blob)), stream: () => swapped(one.length) }) as StoredBlob;
    await expect(importSession(wrong, lines, { findBlob: tampered })).rejects.toMatchObject({ code: "INVALID_ENTRY" });
    expect(await wrong.head("s")).toBeNull();
    expect(await wrong.sweepBlobs({ graceMs: 0 })).toMatchObject({ blobs: 0 });
  }
  const markdown = collect(exportSession(store, "s", { format: "markdown", onBlob }));
  await expect(markdown).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

async function* swapped(length: number): AsyncGenerator<Uint8Array> {
  yield sampleBytes(9, length);
}

test("skein export --blobs writes images and files to a folder that skein import --blobs reads, and skein show names them", async () => {
  const directory = await makeDirectory();
  const picture = sampleBytes(1);
  {
    await using store = await openStore(`jsonl:${join(directory, "a")}`);
    await store.create(header);
    await store.append("s", [pictured(picture)]);
  }
  const [from, to] = [`jsonl:${join(directory, "a")}`, `jsonl:${join(directory, "b")}`];
  const [file, folder] = [join(directory, "talk.jsonl"), join(directory, "files")];
  const shown = await runHere(["show", "s", "--store", from]);
  expect(shown.stdout).toContain(`[image a.png: image/png, ${picture.length} bytes, ${nameOf(picture)}]`);
  const exported = await runHere(["export", "s", "--store", from, "--output", file, "--blobs", folder]);
  expect(exported).toMatchObject({ code: 0, stderr: "" });
  const hash = nameOf(picture).slice("sha256:".length);
  expect(await readdir(folder)).toEqual([hash]);
  expect((await readFile(file)).length).toBeLessThan(2000);
  const without = await runHere(["import", file, "--store", to]);
  expect(without).toMatchObject({ code: 1, stderr: expect.stringContaining("has no blob") });
  const missing = await runHere(["import", file, "--store", to, "--blobs", join(directory, "none")]);
  expect(missing.stderr).toContain("which is no folder");
  expect(await runHere(["import", file, "--store", to, "--blobs", folder])).toMatchObject({ code: 0 });
  {
    await using store = await openStore(to);
    await holds(store, "s", picture);
  }
  await writeFile(join(folder, hash), sampleBytes(2));
  const tampered = await runHere(["import", file, "--store", to, "--blobs", folder, "--id", "t"]);
  expect(tampered).toMatchObject({ code: 1, stderr: expect.stringContaining("are others") });
});

test("a line of another program that is longer than an entry may be is imported with blobs, and exported byte for byte", async () => {
  const picture = randomBytes(4_500_000).toString("base64");
  const line = (type: string, payload: object): string => JSON.stringify({ timestamp: TIME, type, payload });
  const url = `data:image/png;base64,${picture}`;
  const content = [
    { type: "input_text", text: "Look." },
    { type: "input_image", image_url: url },
    { type: "input_image", image_url: `data:image/png;base64,${randomBytes(4_500_000).toString("base64")}` },
  ];
  const text = `${[
    line("session_meta", { id: "0199a3e0-0000-7000-8000-000000000001", cwd: "/srv/shop", cli_version: "0.40.0" }),
    line("response_item", { type: "message", role: "user", content }),
    line("event_msg", { type: "user_message", message: "Look.", images: [url] }),
  ].join("\n")}\n`;
  const codex = foreignFormat("codex");
  await using store = openMemoryStore();
  const { sessions } = await importForeign({ store, userId: "ana" }, codex, [Buffer.from(text)]);
  const id = sessions[0]?.sessionId ?? "";
  expect((await store.readJson(id)).join("").length).toBeLessThan(10_000);
  const { blobs, removed } = await store.sweepBlobs({ graceMs: 0 });
  expect(blobs).toBeGreaterThan(1);
  expect(removed).toBe(0);
  const { pieces } = await writeForeign(codex, store, id);
  const written = (await collect(pieces)).join("");
  expect(createHash("sha256").update(written).digest("hex")).toBe(createHash("sha256").update(text).digest("hex"));
});

test("a reference that was uploaded is accepted by openStore with blobs in another place", async () => {
  const directory = await makeDirectory();
  await using store = await openStore(`jsonl:${directory}`, { inlineMax: 10, blobBytesMax: 100 });
  await store.create(header);
  const ref: BlobRef = await store.putBlob("s", Buffer.from("0123456789a"));
  expect(ref.bytes).toBe(11);
  await expect(store.putBlob("s", randomBytes(101))).rejects.toMatchObject({ code: "TOO_LARGE" });
});
