import { createReadStream, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readForeign } from "../../src/interop/formats/read-foreign.ts";
import { detectFormat } from "../../src/interop/formats/formats.ts";
import { importForeignFile } from "../../src/interop/formats/import-file.ts";
import { writeForeign } from "../../src/interop/formats/write-foreign.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

test("x", async () => {
  const path = process.env.F as string;
  const format = await detectFormat(path);
  const r = await readForeign(format!, createReadStream(path), path);
  console.log(JSON.stringify(r!.header), r!.report, r!.others.length);
  console.log(r!.entries.map((e) => [e.id.slice(0, 10), (e.parentId ?? "-").slice(0, 10), e.type, JSON.stringify({ ...e, id: undefined, parentId: undefined, timestamp: undefined }).slice(0, 500)].join(" ")).join("\n"));
  await using store = openMemoryStore();
  const done = await importForeignFile({ store, userId: null }, format!, path);
  const again = await importForeignFile({ store, userId: null }, format!, path);
  console.log(done.sessions, again.sessions);
  const w = await writeForeign(format!, store, done.sessions[0]!.sessionId);
  let text = "";
  for await (const piece of w.pieces) text += piece;
  if (process.env.OUT) writeFileSync(process.env.OUT, text);
  console.log(w.report, w.handoff);
  const a = readFileSync(path, "utf8").trim().split("\n").map((l) => JSON.parse(l));
  const b = text.trim().split("\n").map((l) => JSON.parse(l));
  expect(b).toEqual(a);
});
