import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { foreignFormat } from "../../src/interop/formats/formats.ts";
import { writeForeign } from "../../src/interop/formats/write-foreign.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { createHeader } from "../../src/session/header.ts";
import { uuidv7 } from "../../src/internal/uuid.ts";
import type { EntryDraft } from "../../src/session/entry.ts";

test("x", async () => {
  await using store = openMemoryStore();
  await store.create(createHeader({ id: "born", cwd: "/tmp/formats/work" }));
  const say = (role: "user" | "assistant", content: string, more = {}): EntryDraft => ({ type: "message", id: uuidv7(), message: { role, content, ...more } as never });
  const drafts: EntryDraft[] = [
    say("user", "ALPHA first question"),
    say("assistant", "BETA looking", { model: "claude-opus-4-8", toolCalls: [{ id: "toolu_1", name: "Bash", arguments: '{"command":"ls"}' }, { id: "toolu_2", name: "Read", arguments: '{"file_path":"/tmp/formats/work/a.txt"}' }] }),
    { type: "message", id: uuidv7(), message: { role: "tool", toolCallId: "toolu_1", name: "Bash", content: "GAMMA a.txt" } },
    { type: "message", id: uuidv7(), message: { role: "tool", toolCallId: "toolu_2", name: "Read", content: "DELTA hello" } },
    say("assistant", "EPSILON one file"),
    say("user", "ZETA second question"),
    say("assistant", "ETA second answer"),
  ];
  if (process.env.COMPACT) drafts.push({ type: "compaction", id: uuidv7(), summary: "THETA summary", firstKeptEntryId: drafts[5]!.id!, tokensBefore: 100 }, say("user", "IOTA after"), say("assistant", "KAPPA after answer"));
  await store.append("born", drafts);
  if (process.env.BRANCH) {
    await store.append("born", [say("user", "LAMBDA side"), say("assistant", "MU side answer"), { type: "leaf", targetId: drafts[6]!.id! }]);
  }
  const w = await writeForeign(foreignFormat(process.env.FORMAT ?? "claude-code"), store, "born");
  let text = "";
  for await (const piece of w.pieces) text += piece;
  console.log(w.report, w.handoff.path);
  writeFileSync(process.env.OUT as string, text);
});
