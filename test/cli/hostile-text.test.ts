import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTerminal } from "../../src/cli/terminal.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { runHere } from "./run-skein.ts";

let directory: string;
let store: SessionStore;
let url: string;
let count = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-hostile-"));
  url = `sqlite:${directory}/skein.db`;
  store = await openSqliteStore({ path: `${directory}/skein.db` });
});

afterAll(async () => {
  await store.close();
  await rm(directory, { recursive: true, force: true });
});

/** Texts with many control characters. */
const hostile = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0x9f }).map((code) => String.fromCharCode(code)),
      fc.constantFrom(
        "\u001b[2J",
        "\u001b]0;title\u0007",
        "\u001b[1m",
        "\u202e",
        "\u2066",
        "\u009b31m",
        "\r",
        "\r\n",
        "\ud800",
        "word",
      ),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => `needle ${parts.join("")}`);

async function writeHostile(text: string): Promise<string> {
  const id = `s${count++}`;
  await store.create(createHeader({ id }));
  // SQLite cannot group by half of a surrogate pair.
  const name = text.replaceAll(/\p{Cs}/gu, "");
  const call = { id: "c", name: text, arguments: text };
  await store.append(id, [
    { id: "u", type: "message", message: { role: "user", content: text, agent: text } },
    {
      id: "a",
      type: "message",
      message: { role: "assistant", content: text, toolCalls: [call], model: name, provider: name },
    },
    { id: "t", type: "message", message: { role: "tool", toolCallId: "c", name: text, content: text, isError: true } },
    { type: "label", targetId: "u", label: text },
    { type: "session_info", name: text },
    { type: "branch_summary", summary: text, fromId: null },
    { type: "model_change", provider: text, modelId: text },
  ]);
  await store.saveCheckpoint({
    id: `${id}-checkpoint`,
    sessionId: id,
    version: 1,
    leafId: "u",
    createdAt: new Date(0).toISOString(),
    parentCheckpointId: null,
    metadata: { note: text },
  });
  return id;
}

function commandLines(id: string): string[][] {
  return [["list"], ["search", "needle"], ["show", id, "--all"], ["tree", id], ["checkpoints", id], ["stats"]];
}

test("no control character of a transcript reaches the output, as text or as JSON", async () => {
  await fc.assert(
    fc.asyncProperty(hostile, async (text) => {
      const id = await writeHostile(text);
      for (const args of commandLines(id)) {
        for (const json of [[], ["--json"]]) {
          const { code, stdout, stderr } = await runHere([...args, ...json, "--store", url]);
          expect([args, code]).toEqual([args, 0]);
          expect(stdout).toContain(args[0] === "stats" || args[0] === "checkpoints" ? "" : "needle");
          expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Cs}]/u);
          if (json.length > 0) expect(stdout).not.toMatch(/[\t\u2028\u2029]|\n./);
        }
      }
    }),
    { numRuns: 15 },
  );
});

test("with colours, only the program's own colour codes reach the output", async () => {
  await fc.assert(
    fc.asyncProperty(hostile, async (text) => {
      const id = await writeHostile(text);
      for (const args of [
        ["show", id],
        ["tree", id],
        ["search", "needle"],
      ]) {
        const { stdout } = await runHere([...args, "--store", url], { colours: true });
        expect(stdout).toContain("\u001b[");
        const plain = await runHere([...args, "--store", url, "--no-color"], { colours: true });
        expect(plain.stdout).not.toContain("\u001b");
        // Without the colour codes, the output is the same.
        const rest = [1, 2, 32, 0].reduce((text, code) => text.replaceAll(`\u001b[${code}m`, ""), stdout);
        expect(rest).toBe(plain.stdout);
      }
    }),
    { numRuns: 10 },
  );
});

test("a terminal passes only lines, tabs and its own colours, even if a text was not sanitized", () => {
  const hostile = "a\u001b[2J\u202eb\u0000\tc\nd\r\u009b";
  for (const colours of [false, true]) {
    let written = "";
    const terminal = createTerminal((text) => {
      written += text;
    }, colours);
    terminal.line(`${terminal.bold("x")} ${hostile}`);
    const bold = colours ? "\u001b[1mx\u001b[0m" : "x";
    expect(written).toBe(`${bold} a\ufffd[2J\ufffdb\ufffd\tc\nd\n\ufffd\n`);
  }
});
